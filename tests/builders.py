"""Rows for tests, in few words."""

from collections.abc import Iterable, Mapping
from typing import Any

from actions.models import Action, ActionParent
from audits.models import Audit, Goal, Strategy
from cluster.models import ComputeNode, Server
from plans.models import ActionPlan


def make_strategy(name: str = "dummy", goal: str = "dummy") -> Strategy:
    found_goal, _ = Goal.objects.get_or_create(name=goal, deleted_at=None, defaults={"display_name": goal.title()})
    strategy, _ = Strategy.objects.get_or_create(
        name=name, deleted_at=None, defaults={"display_name": name.title(), "goal": found_goal}
    )
    return strategy


def make_audit(name: str = "an audit", **columns: Any) -> Audit:
    strategy = columns.pop("strategy", None) or make_strategy()
    columns = {"audit_type": Audit.Type.ONESHOT, "goal": strategy.goal, "strategy": strategy, **columns}
    return Audit.objects.create(name=name, **columns)


def make_plan(graph: Mapping[str, Iterable[str]] | None = None, **columns: Any) -> ActionPlan:
    """Make a plan of nop actions: ``make_plan({"a": [], "b": ["a"]})`` has b wait for a.

    The names are the actions' messages: ``action(plan, "b")`` finds one again. Pass ``state="ONGOING"`` and the
    like to have the plan in another state than RECOMMENDED.
    """
    plan = ActionPlan.objects.create(**columns)
    actions = {
        name: Action(action_plan=plan, action_type="nop", input_parameters={"message": name}) for name in graph or {}
    }
    Action.objects.bulk_create(actions.values())
    ActionParent.objects.bulk_create(
        ActionParent(child=actions[name], parent=actions[parent])
        for name, parents in (graph or {}).items()
        for parent in parents
    )
    return plan


def action(plan: ActionPlan, name: str) -> Action:
    return Action.objects.get(action_plan=plan, input_parameters__message=name)


def make_node(hostname: str = "compute1", **columns: Any) -> ComputeNode:
    return ComputeNode.objects.create(**{"hostname": hostname, "vcpus": 16, "memory": 32768, "disk": 500, **columns})


def make_server(name: str = "web-1", node: ComputeNode | None = None, **columns: Any) -> Server:
    return Server.objects.create(**{"name": name, "node": node, "vcpus": 2, "memory": 2048, "disk": 20, **columns})
