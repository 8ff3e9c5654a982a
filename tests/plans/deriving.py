"""Nop actions that derive others, with a behaviour for each name."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from actions.graph.proposals import ProposedAction
from actions.types.base import DONE, ActionType, Answer, Outcome
from actions.types.nop import Nop
from plans.models import ActionPlan
from plans.planning.proposals import propose

Answering = Callable[[ActionType], Outcome]


def behave(monkeypatch: pytest.MonkeyPatch, **by_name: Answering) -> list[str]:
    """Set the answers of nop actions by name; ``NAME_goes_on`` is the answer of its continuation.

    Return the names in the order of the calls.
    """
    calls: list[str] = []

    def answering(ending: str) -> Callable[[ActionType], Outcome]:
        def answer(self: ActionType) -> Outcome:
            calls.append(f"{self.input_parameters['message']}{ending}")
            return by_name.get(calls[-1], lambda _: DONE)(self)

        return answer

    monkeypatch.setattr(Nop, "execute", answering(""))
    monkeypatch.setattr(Nop, "go_on", answering("_goes_on"))
    return calls


def proposed(graph: Mapping[str, Iterable[str]], **parameters: Any) -> list[ProposedAction]:
    """Return proposed nop actions: in ``proposed({"x": [], "y": ["x"]})`` y waits for x."""
    made: dict[str, ProposedAction] = {}
    for name, parents in graph.items():
        switches = parameters.get(name, {})
        uuids = [made[parent].uuid for parent in parents]
        made[name] = ProposedAction("nop", {"message": name, **switches}, uuids)
    return list(made.values())


def deriving(graph: Mapping[str, Iterable[str]], reason: str = "", **parameters: Any) -> Answering:
    """Return an answer that derives these actions."""
    return lambda _: Outcome(Answer.WAIT, reason, proposed(graph, **parameters))


Graph = Mapping[str, Iterable[str]]


def plan_to_derive(
    graph: Graph, planned: Mapping[str, Graph], parameters: Mapping[str, Any] | None = None, **columns: Any
) -> ActionPlan:
    """Make a plan of nop actions: with ``planned={"a": {"x": [], "y": ["x"]}}`` a is to derive x and y."""
    made: dict[str, ProposedAction] = {}
    for origin, names in [(None, graph), *planned.items()]:
        for name, parents in names.items():
            made[name] = ProposedAction(
                "nop",
                {"message": name, **(parameters or {}).get(name, {})},
                [made[parent].uuid for parent in parents],
                derived_from=made[origin].uuid if origin else None,
            )
    plan = propose(list(made.values()))
    ActionPlan.objects.filter(pk=plan.pk).update(**{"state": "PENDING", **columns})
    return ActionPlan.objects.get(pk=plan.pk)


def waits(_: ActionType) -> Outcome:
    """Wait for the planned actions, and derive no others."""
    return Outcome(Answer.WAIT)


FAILS = {"fail_execute": True}
