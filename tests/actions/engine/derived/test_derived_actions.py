"""Derived actions: an action creates others while it runs, waits for them without a worker, and then continues."""

from uuid import UUID

import pytest

from actions.engine import execution
from actions.graph.proposals import ProposedAction, write_actions
from actions.models import Action, ActionParent
from actions.types.base import DONE, ActionFailed, ActionType, Answer, Outcome
from actions.types.nop import Nop
from plans.applier.applier import Applier
from plans.applier.plan_run import PlanRun
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from tests.builders import action, make_plan
from tests.plans.applier.test_commits import counted
from tests.plans.deriving import behave, deriving, proposed
from tests.plans.inline import InlineExecutor, run_waiting
from watcher_site.models import Service

pytestmark = pytest.mark.django_db


def reload(plan: ActionPlan) -> ActionPlan:
    return ActionPlan.objects.get(pk=plan.pk)


def states(plan: ActionPlan) -> dict[str, str]:
    return dict(plan.actions.order_by("pk").values_list("input_parameters__message", "state"))


def events(found: Action) -> list[tuple[str, str]]:
    return list(found.events.values_list("event", "result"))


def test_deriving_action_continues_after_its_derived_actions_ran_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = behave(monkeypatch, a=deriving({"y": [], "x": ["y"]}))
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    run_waiting()
    assert calls == ["a", "y", "x", "a_goes_on", "b"]
    assert (reload(plan).state, set(states(plan).values())) == ("SUCCEEDED", {"SUCCEEDED"})


def test_events_record_the_execution_before_and_after_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    behave(monkeypatch, a=deriving({"x": []}, reason="one at least"))
    plan = make_plan({"a": []}, state="PENDING")
    run_waiting()
    found = action(plan, "a")
    assert events(found) == [
        ("pre_condition", "Success"),
        ("execute", "Waiting"),
        ("go_on", "Success"),
        ("post_condition", "Success"),
    ]
    assert (found.attempt, found.status_message, found.owner) == (2, None, None)
    assert found.start_time < action(plan, "x").start_time < found.end_time


def test_waiting_action_has_no_owner_and_its_message_counts_the_derived_actions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    behave(monkeypatch, a=deriving({"x": [], "y": []}, reason="two more nodes"))
    plan = make_plan({"a": []}, state="PENDING")
    applier = Applier(InlineExecutor())
    applier.advance()
    found = action(plan, "a")
    assert (found.state, found.owner, found.end_time) == ("PENDING", None, None)
    assert found.status_message == "Action waits for 2 actions that it derived. two more nodes"
    assert [one.derived_from for one in plan.actions.order_by("pk")] == [None, found, found]
    assert set(found.parents.all()) == {action(plan, "x"), action(plan, "y")}
    applier.stop()


def test_derived_action_may_derive_other_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = behave(monkeypatch, a=deriving({"x": [], "y": ["x"]}), x=deriving({"deep": []}))
    plan = make_plan({"a": []}, state="PENDING")
    run_waiting()
    assert calls == ["a", "x", "deep", "x_goes_on", "y", "a_goes_on"]
    assert reload(plan).state == "SUCCEEDED"


def test_continuing_action_may_derive_more_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def go_on(self: ActionType) -> Outcome:
        seen.append([f"{one.action_type} {one.state}" for one in self.context.derived])
        return Outcome(Answer.WAIT, derived=proposed({"y": []})) if len(seen) == 1 else DONE

    calls = behave(monkeypatch, a=deriving({"x": []}), a_goes_on=go_on)
    plan = make_plan({"a": []}, state="PENDING")
    run_waiting()
    assert calls == ["a", "x", "a_goes_on", "y", "a_goes_on"]
    assert seen == [["nop SUCCEEDED"], ["nop SUCCEEDED"] * 2]
    assert reload(plan).state == "SUCCEEDED"


def test_deferred_continuation_is_retried_without_executing_the_action_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, derive = [Outcome(Answer.RETRY, "busy"), DONE], deriving({"x": []})

    def execute(self: ActionType) -> Outcome:
        self.context.outputs["called"] = 1
        return derive(self)

    calls = behave(monkeypatch, a=execute, a_goes_on=lambda _: answers.pop(0))
    plan = make_plan({"a": []}, state="PENDING")
    run_waiting()
    found = action(plan, "a")
    assert calls == ["a", "x", "a_goes_on", "a_goes_on"]
    assert (found.state, found.outputs) == ("SUCCEEDED", {"called": 1})
    assert found.start_time < action(plan, "x").start_time


def test_derived_actions_on_several_pages_are_all_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plans.applier.plan_run.PAGE", 3)
    names = [f"x{number}" for number in range(10)]
    calls = behave(monkeypatch, a=deriving({name: [] for name in names}))
    make_plan({"a": []}, state="PENDING")
    run_waiting()
    assert calls == ["a", *names, "a_goes_on"]


def test_other_actions_run_while_an_action_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = behave(monkeypatch, a=deriving({"x": []}))
    make_plan({"a": [], "b": [], "c": ["b"]}, state="PENDING")
    run_waiting()
    assert sorted(calls) == ["a", "a_goes_on", "b", "c", "x"]


@pytest.mark.parametrize("answer", [lambda _: DONE, lambda _: Outcome(Answer.RETRY, "later"), deriving({"more": []})])
def test_failed_derived_action_fails_the_deriving_action_for_any_outcome(
    monkeypatch: pytest.MonkeyPatch, answer: object
) -> None:
    behave(monkeypatch, a=deriving({"x": [], "y": []}, x={"fail_execute": True}), a_goes_on=answer)
    monkeypatch.setattr(Nop, "pre_condition", fail_x)
    plan = make_plan({"a": []}, state="PENDING")
    run_waiting()
    assert states(plan) == {"a": "FAILED", "x": "FAILED", "y": "SUCCEEDED"}
    assert reload(plan).state == "FAILED"


def fail_x(self: Nop) -> None:
    if self.input_parameters["message"] == "x":
        raise ActionFailed("no capacity")


def test_message_of_the_deriving_action_names_the_failed_derived_action(monkeypatch: pytest.MonkeyPatch) -> None:
    behave(monkeypatch, a=deriving({"x": [], "y": []}))
    monkeypatch.setattr(Nop, "pre_condition", fail_x)
    plan = make_plan({"a": []}, state="PENDING")
    run_waiting()
    assert action(plan, "a").status_message == (
        f"Action failed in completion: 1 of the 2 actions that it derived failed: {action(plan, 'x').name}: "
        "Action failed in pre_condition: no capacity"
    )


def test_reason_of_go_on_replaces_the_message_about_failed_derived_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    behave(monkeypatch, a=deriving({"x": []}), a_goes_on=lambda _: Outcome(Answer.OK, "The node was removed again."))
    monkeypatch.setattr(Nop, "pre_condition", fail_x)
    plan = make_plan({"a": []}, state="PENDING")
    run_waiting()
    assert action(plan, "a").status_message == "Action failed in completion: The node was removed again."


def test_cancelled_derived_action_cancels_the_deriving_action_and_the_plan_succeeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    behave(monkeypatch, a=deriving({"x": []}), x=lambda _: Outcome(Answer.CANCEL, "nobody needs it"))
    plan = make_plan({"a": []}, state="PENDING")
    run_waiting()
    assert states(plan) == {"a": "CANCELLED", "x": "CANCELLED"}
    assert "the action that it derived was cancelled" in (action(plan, "a").status_message or "")
    assert reload(plan).state == "SUCCEEDED"


def test_deriving_action_succeeds_after_a_skipped_derived_action(monkeypatch: pytest.MonkeyPatch) -> None:
    behave(monkeypatch, a=lambda _: Outcome(Answer.WAIT, derived=[ProposedAction("nop", {"message": "x", **SKIPS})]))
    plan = make_plan({"a": []}, state="PENDING")
    run_waiting()
    assert states(plan) == {"a": "SUCCEEDED", "x": "SKIPPED"}


SKIPS = {"skip_pre_condition": True}
# Constant, because they occur in the names of tests.
ONE, TWO = UUID(int=1), UUID(int=2)


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Outcome(Answer.WAIT), "execute of actions of type nop waits, and derives no action to wait for"),
        (
            Outcome(Answer.OK, derived=[ProposedAction("nop", {})]),
            "execute of actions of type nop derives actions, and answers OK instead of WAIT",
        ),
        (
            Outcome(Answer.WAIT, derived=["nop"]),  # type: ignore[list-item]
            "execute of actions of type nop derives an object that is not a ProposedAction: 'nop'",
        ),
        (
            Outcome(Answer.WAIT, derived=[ProposedAction("nop", {}, [ONE], ONE)]),
            f"parents: action {ONE} waits for itself.",
        ),
        (
            Outcome(Answer.WAIT, derived=[ProposedAction("nop", {}, [TWO], ONE)]),
            f"parents: {TWO}, parent of action {ONE}, is not an action of the plan.",
        ),
        (
            Outcome(Answer.WAIT, derived=[ProposedAction("nop", {}, [], ONE), ProposedAction("nop", {}, [], ONE)]),
            f"actions: {ONE} is given 2 times.",
        ),
    ],
)
def test_invalid_derived_actions_fail_the_deriving_action_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, outcome: Outcome, reason: str
) -> None:
    behave(monkeypatch, a=lambda _: outcome)
    plan = make_plan({"a": []}, state="PENDING")
    run_waiting()
    assert action(plan, "a").status_message == f"Action failed in execute: {reason}"
    assert reload(plan).state == "FAILED"


def test_cyclic_derived_actions_fail_the_deriving_action(monkeypatch: pytest.MonkeyPatch) -> None:
    cycle = [ProposedAction("nop", {}, [TWO], ONE), ProposedAction("nop", {}, [ONE], TWO)]
    behave(monkeypatch, a=lambda _: Outcome(Answer.WAIT, derived=cycle))
    plan = make_plan({"a": []}, state="PENDING")
    run_waiting()
    assert (action(plan, "a").status_message or "").startswith(
        "Action failed in execute: parents: these actions wait for each other: "
    )


def test_unstorable_parameters_fail_the_deriving_action_and_create_no_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unstorable = [ProposedAction("nop", {"message": "x"}), ProposedAction("nop", {"message": object()})]
    behave(monkeypatch, a=lambda _: Outcome(Answer.WAIT, derived=unstorable))
    plan = make_plan({"a": []}, state="PENDING")
    run_waiting()
    assert (states(plan), action(plan, "a").status_message) == ({"a": "FAILED"}, "Action failed in execute: TypeError")
    assert not ActionParent.objects.exists()


def test_progress_of_a_plan_counts_derived_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    behave(monkeypatch, a=deriving({"x": [], "y": []}))
    plan = make_plan({"a": []}, state="PENDING")
    run_waiting()
    counted = ActionPlan.objects.with_progress().get(pk=plan.pk)
    assert (counted.total_actions, counted.finished_actions) == (3, 3)


def test_rollback_reverts_the_deriving_action_before_its_derived_actions(
    monkeypatch: pytest.MonkeyPatch, settings: object
) -> None:
    settings.ROLLBACK = True
    reverted: list[str] = []
    monkeypatch.setattr(Nop, "revert", lambda self: bool(reverted.append(self.input_parameters["message"])) or True)
    behave(monkeypatch, a=deriving({"x": [], "y": ["x"]}), b=lambda _: Outcome(Answer.ERROR, "so that all is undone"))
    make_plan({"a": [], "b": ["a"]}, state="PENDING")
    run_waiting()
    assert reverted == ["a", "y", "x"]


@pytest.mark.postgresql  # Django sends SQLite at most 999 values a statement, and so more statements.
def test_statement_count_of_deriving_does_not_depend_on_the_number_of_actions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    costs = []
    for size in (10, 10, 100):  # The first one fills the caches of the process.
        graph: dict[str, list[str]] = {f"x{number}": [f"x{number - 1}"] if number else [] for number in range(size)}
        behave(monkeypatch, a=deriving(graph))
        plan, lease = begin_plan()
        with counted() as statements:
            assert execution.execute(action(plan, "a"), lease)
        assert plan.actions.count() == size + 1
        costs.append(len(statements))
    assert costs[1] == costs[2]


def begin_plan() -> tuple[ActionPlan, PlanLease]:
    applier = Service.register(Service.APPLIER, "here")
    plan = make_plan({"a": []}, state="ONGOING", applier=applier)
    return plan, PlanLease.of(plan, applier)


def test_derived_action_takes_no_more_statements_than_an_ordinary_action(monkeypatch: pytest.MonkeyPatch) -> None:
    """Except for a fixed number of statements of the deriving action."""
    size, few = 100, 20
    names: dict[str, list[str]] = {f"x{number}": [] for number in range(size)}
    behave(monkeypatch, a=deriving(names))
    costs = []
    for graph in (names, {"a": []}):
        make_plan(graph, state="PENDING")
        with counted() as statements:
            run_waiting()
        costs.append(len([sql for sql in statements if "SAVEPOINT" not in sql]))
    assert costs[1] <= costs[0] + few + size // 8


def test_go_on_reads_the_outputs_of_the_action_and_of_its_derived_actions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    derive = deriving({"x": []})

    def execute(self: ActionType) -> Outcome:
        self.context.outputs["called"] = 1
        return derive(self)

    def made(self: ActionType) -> Outcome:
        self.context.outputs["node"] = "seven"
        return DONE

    def go_on(self: ActionType) -> Outcome:
        self.context.outputs["nodes"] = [one.outputs["node"] for one in self.context.derived]
        return DONE

    behave(monkeypatch, a=execute, x=made, a_goes_on=go_on)
    plan = make_plan({"a": []}, state="PENDING")
    run_waiting()
    assert action(plan, "a").outputs == {"called": 1, "nodes": ["seven"]}


def test_action_continues_if_its_derived_actions_ended_before_its_own_report_was_read() -> None:
    plan, _ = begin_plan()
    run = PlanRun(plan, Service.objects.get(), InlineExecutor())
    job = run.next_job({""})
    found = action(plan, "a")
    write_actions(plan.pk, proposed({"x": [], "y": []}), derived_from=found)
    plan.actions.filter(derived_from=found).update(state="SUCCEEDED")
    plan.actions.filter(pk=found.pk).update(has_derived=True, attempt=1)
    for one in plan.actions.filter(derived_from=found):
        run.record_end(one, True)
    assert (job and job.action, run.next_job({""})) == (found, None)
    run.record_end(action(plan, "a"), True)
    next_job = run.next_job({""})
    assert next_job
    assert next_job.action == found


def test_context_contains_whether_the_action_is_derived(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, bool] = {}

    def execute(self: ActionType) -> Outcome:
        known[self.input_parameters["message"]] = self.context.is_derived
        return derive(self) if self.input_parameters["message"] == "a" else DONE

    derive = deriving({"x": []})
    behave(monkeypatch, a=execute, x=execute)
    make_plan({"a": []}, state="PENDING")
    run_waiting()
    assert known == {"a": False, "x": True}
