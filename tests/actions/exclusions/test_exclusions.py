"""Application of rules when a plan is created, in its preflight, and before each action starts."""

from typing import Any

import pytest
from django.db import transaction

from actions.engine.execution import execute
from actions.exclusions.records import change_exclusion, delete_exclusion
from actions.graph.proposals import ProposedAction
from actions.models import Action, ActionEvent
from actions.operations.skipping import restore_action, restore_actions, skip_action
from plans.models import ActionPlan
from plans.planning.continuation import continue_plan
from plans.planning.proposals import propose
from plans.preflight import preflight
from tests.actions.exclusions.builders import make_exclusion
from tests.builders import action, make_node, make_plan, make_server
from tests.plans.applier.test_commits import begin, counted
from tests.plans.inline import run_waiting
from watcher_site.refusals import Conflict

pytestmark = pytest.mark.django_db
SAID = "Action was skipped automatically: It is excluded by 'frozen'. Reason: audit week"
OFFICE_HOURS = {"opens": "08:00", "closes": "18:00"}
IS_OPEN = "watcher_site.windows.maintenance.Window.is_open"
PRE_CONDITION = "actions.types.nop.Nop.pre_condition"


def nop(message: str, **options: Any) -> ProposedAction:
    return ProposedAction("nop", {"message": message}, **options)


def states(plan: ActionPlan) -> dict[str, str]:
    return dict(plan.actions.order_by("pk").values_list("input_parameters__message", "state"))


def end(plan: ActionPlan) -> ActionPlan:
    run_waiting()
    return ActionPlan.objects.get(pk=plan.pk)


def run_one() -> dict[str, str]:
    """Run a plan of one action, which fills the rule cache of the process, and return the states."""
    return states(end(make_plan({"a": []}, state="PENDING")))


def test_excluded_action_is_skipped_at_planning_and_names_the_rule() -> None:
    rule = make_exclusion(reason="audit week", action_types=["nop"])
    plan = propose([nop("a"), ProposedAction("sleep", {"duration": 0})])
    skipped = action(plan, "a")
    assert (skipped.state, skipped.status_message, skipped.exclusion) == ("SKIPPED", SAID, rule)
    assert plan.actions.get(action_type="sleep").state == "PENDING"


def test_plan_with_an_excluded_action_succeeds_and_its_message_names_the_rule() -> None:
    make_exclusion(reason="audit week", action_types=["sleep"])
    sleep = ProposedAction("sleep", {"duration": 0})
    plan = propose([sleep, nop("after", parents=[sleep.uuid])])
    plan.launch()
    plan = end(plan)
    assert (plan.state, states(plan)["after"]) == ("SUCCEEDED", "SUCCEEDED")
    assert plan.status_message.startswith("One or more actions were skipped. 1 of 2:")
    assert "It is excluded by 'frozen'" in plan.status_message


def test_rule_created_after_the_plan_is_applied_before_each_action() -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    make_exclusion(reason="audit week", action_types=["nop"])
    assert end(plan).state == "SUCCEEDED"
    assert set(plan.actions.values_list("state", "status_message")) == {("SKIPPED", SAID)}
    event = ActionEvent.objects.get(action=action(plan, "a"))
    assert (event.event, event.result) == ("pre_condition", "Skipped")


def test_deleted_rule_in_the_cache_skips_nothing() -> None:
    rule = make_exclusion(action_types=["nop"])
    assert run_one() == {"a": "SKIPPED"}
    delete_exclusion(rule)
    assert run_one() == {"a": "SUCCEEDED"}


def test_disabled_rule_is_not_applied() -> None:
    rule = make_exclusion(action_types=["nop"])
    assert run_one() == {"a": "SKIPPED"}
    change_exclusion(rule, {"enabled": False}, "alice")
    assert run_one() == {"a": "SUCCEEDED"}
    assert states(propose([nop("a")])) == {"a": "PENDING"}
    change_exclusion(rule, {"enabled": True}, "alice")
    assert run_one() == {"a": "SKIPPED"}


def test_rule_with_a_window_is_applied_when_the_plan_runs_and_not_at_planning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(IS_OPEN, lambda *_: True)
    make_exclusion(action_types=["nop"], window=OFFICE_HOURS)
    plan = propose([nop("a")])
    assert states(plan) == {"a": "PENDING"}
    assert preflight(plan).counts["SKIPPED"] == 1
    plan.launch()
    assert states(end(plan)) == {"a": "SKIPPED"}


def test_rule_is_not_applied_outside_its_window(monkeypatch: pytest.MonkeyPatch) -> None:
    make_exclusion(action_types=["nop"], window=OFFICE_HOURS)
    monkeypatch.setattr(IS_OPEN, lambda *_: False)
    assert run_one() == {"a": "SUCCEEDED"}


def test_window_that_opens_during_pre_condition_is_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    make_exclusion(action_types=["nop"], window=OFFICE_HOURS)
    looks = iter([False, True, True])
    monkeypatch.setattr(IS_OPEN, lambda *_: next(looks))
    assert run_one() == {"a": "SKIPPED"}


def test_rule_created_during_pre_condition_is_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    run_one()
    rules: list[Any] = []
    monkeypatch.setattr(PRE_CONDITION, lambda _: rules or rules.append(make_exclusion(reason="audit week")))
    plan = end(make_plan({"a": []}, state="PENDING"))
    assert (action(plan, "a").status_message, action(plan, "a").attempt) == (SAID, 0)


def test_unrelated_rule_created_during_pre_condition_repeats_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_one()
    looks: list[Any] = []

    def look(_: Any) -> None:
        looks.append(looks or make_exclusion(action_types=["migrate"]))

    monkeypatch.setattr(PRE_CONDITION, look)
    assert (run_one(), len(looks)) == ({"a": "SUCCEEDED"}, 2)


def test_planned_derived_actions_are_skipped_with_an_excluded_action() -> None:
    server = make_server(node=make_node())
    make_exclusion(targets={"servers": [str(server.uuid)]})
    origin = ProposedAction("stop", {"resource_id": str(server.uuid)})
    plan = propose([origin, nop("x", derived_from=origin.uuid), nop("other")])
    assert states(plan) == {None: "SKIPPED", "x": "SKIPPED", "other": "PENDING"}
    assert action(plan, "x").status_message == (
        "Action was skipped automatically: The action that it was derived from was skipped"
    )


def test_action_skipped_by_a_rule_can_be_restored_only_after_its_deletion() -> None:
    rule = make_exclusion(action_types=["nop"])
    plan = propose([nop("a"), nop("b")])
    a, b = action(plan, "a"), action(plan, "b")
    with pytest.raises(Conflict, match=f"Action {a.uuid} cannot be restored: it is still excluded by 'frozen'"):
        restore_action(a.uuid)
    delete_exclusion(rule)
    restore_action(a.uuid)
    assert restore_actions(plan, [b.uuid]) == 1
    assert set(plan.actions.values_list("state", "status_message", "exclusion")) == {("PENDING", None, None)}


def test_excluded_derived_action_is_not_restored_with_its_deriving_action() -> None:
    make_exclusion(action_types=["nop"])
    origin = ProposedAction("sleep", {"duration": 0})
    plan = propose([origin, nop("x", derived_from=origin.uuid)])
    skip_action(origin.uuid, "alice")
    restore_action(origin.uuid)
    assert states(plan) == {None: "PENDING", "x": "SKIPPED"}


def test_rules_are_applied_to_a_continued_plan() -> None:
    plan = make_plan({"a": [], "b": []}, state="FAILED")
    plan.actions.update(state=Action.State.FAILED)
    make_exclusion(action_types=["nop"])
    assert set(states(continue_plan(plan)).values()) == {"SKIPPED"}


def test_expired_rule_is_not_applied() -> None:
    rule = make_exclusion(action_types=["nop"], expires_at="2999-01-01T00:00")
    type(rule).objects.update(expires_at="2020-01-01T00:00Z")
    assert states(propose([nop("a")])) == {"a": "PENDING"}


def test_preflight_shows_the_actions_that_rules_would_skip() -> None:
    plan = make_plan({"a": [], "b": []})
    make_exclusion(reason="audit week", action_types=["nop"])
    found = preflight(plan)
    assert (found.counts["SKIPPED"], found.prospects[0].foresight.message) == (2, SAID)


def test_unrelated_rules_take_no_statement(django_assert_num_queries: Any) -> None:
    make_exclusion(action_types=["migrate"])
    plan, lease = begin(2)
    first, second = plan.actions.order_by("pk")
    execute(first, lease)
    with counted() as statements:
        execute(second, lease)
    kinds = [sql.split()[0] for sql in statements if "SAVEPOINT" not in sql]
    assert kinds in (["WITH", "WITH"], ["UPDATE", "INSERT", "UPDATE", "UPDATE", "INSERT"])


def test_rolled_back_change_of_a_rule_is_not_cached() -> None:
    rule = make_exclusion(action_types=["nop"])
    assert run_one() == {"a": "SKIPPED"}
    with transaction.atomic():
        change_exclusion(rule, {"action_types": ["migrate"]}, "alice")
        assert run_one() == {"a": "SUCCEEDED"}
        transaction.set_rollback(True)
    assert run_one() == {"a": "SKIPPED"}
