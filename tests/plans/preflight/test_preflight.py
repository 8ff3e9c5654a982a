"""Preflights of plans, which execute nothing."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from uuid import uuid4

import pytest
from pytest_django import Settings

from actions.engine import phases
from actions.graph.proposals import ProposedAction
from actions.models import Action, ActionParent
from actions.types.base import DONE, ActionType, Answer, CannotBeForeseen, Outcome, explain
from actions.types.nop import Nop
from cluster.drivers.embedded import EmbeddedCloud
from cluster.models import ComputeNode, Server, Synchronization
from plans.models import ActionPlan
from plans.planning.proposals import propose
from plans.preflight import Preflight, preflight
from tests.builders import action, make_node, make_plan, make_server
from tests.plans.deriving import plan_to_derive, waits
from tests.plans.inline import run_waiting
from watcher_site.refusals import Conflict

pytestmark = pytest.mark.django_db

Step = tuple[str, dict[str, Any]]


class WithoutForesee(Nop):
    """A type without ``foresee``, derived from a type that has it."""

    name = "blind"

    def execute(self) -> Outcome:
        raise AssertionError("It was executed")


class FailingForesee(ActionType):
    """A type whose ``foresee`` raises an unexpected error."""

    name, description, schema = "forgetful", "", {"type": "object"}

    def execute(self) -> Outcome:
        return DONE

    def foresee(self) -> Outcome:
        raise LookupError("a secret")


class UnforeseeableType(FailingForesee):
    name = "deriving"

    def foresee(self) -> Outcome:
        raise CannotBeForeseen("It depends on the weather.")


class MirroredCloud(EmbeddedCloud):
    is_mirrored = True


def chain(*steps: Step, **columns: Any) -> ActionPlan:
    """Make a plan of actions, each with the previous one as its parent."""
    plan = make_plan(**columns)
    actions = [Action.objects.create(action_plan=plan, action_type=kind, input_parameters=it) for kind, it in steps]
    ActionParent.objects.bulk_create(ActionParent(child=child, parent=parent) for parent, child in pairwise(actions))
    return plan


def migrate(server: Server, destination: str | None = None) -> Step:
    parameters = {"resource_id": str(server.uuid), "migration_type": "live", "source_node": str(server.node)}
    return "migrate", parameters | ({"destination_node": destination} if destination else {})


def switch_off(node: ComputeNode) -> Step:
    return "change_node_power_state", {"resource_id": str(node.uuid), "state": "off"}


def predicted(found: Preflight) -> list[tuple[str, str | None]]:
    return [(prospect.outcome, prospect.foresight.message) for prospect in found.prospects]


def outcomes(found: Preflight) -> list[str]:
    return [prospect.outcome for prospect in found.prospects]


NO_CAPACITY = "Action failed in execute: No valid host was found. compute2 has 0 MB of memory free of 2048 needed."


@pytest.fixture
def source() -> ComputeNode:
    make_node("compute2", memory=2048)
    return make_node("compute1")


def test_second_of_two_migrations_to_the_last_capacity_fails(source: ComputeNode) -> None:
    servers = [make_server(f"web-{number}", source) for number in range(2)]
    plan = chain(*(migrate(server, "compute2") for server in servers))
    assert predicted(preflight(plan)) == [("SUCCEEDED", None), ("FAILED", NO_CAPACITY)]


def test_second_migration_fails_when_the_cloud_chooses_the_node(source: ComputeNode) -> None:
    servers = [make_server(f"web-{number}", source) for number in range(2)]
    plan = chain(*map(migrate, servers))
    [_, (outcome, message)] = predicted(preflight(plan))
    assert (outcome, message) == (
        "FAILED",
        "Action failed in execute: No valid host was found. There are not enough hosts available.",
    )


def test_preflight_executes_nothing_and_writes_nothing(source: ComputeNode) -> None:
    server = make_server("web", source)
    plan = chain(migrate(server, "compute2"), switch_off(source))
    before = list(Action.objects.values()), list(Server.objects.values()), list(ComputeNode.objects.values())
    assert outcomes(preflight(plan)) == ["SUCCEEDED", "SUCCEEDED"]
    after = list(Action.objects.values()), list(Server.objects.values()), list(ComputeNode.objects.values())
    assert before == after


def test_node_with_running_servers_cannot_be_switched_off(source: ComputeNode) -> None:
    servers = [make_server(f"web-{number}", source) for number in range(2)]
    plan = chain(migrate(servers[0], "compute2"), switch_off(source))
    assert predicted(preflight(plan))[1] == (
        "FAILED",
        "Action failed in execute: Compute node compute1 has 1 running server",
    )


def test_action_on_a_deleted_server_would_be_skipped(source: ComputeNode) -> None:
    server = make_server("web", source)
    plan = chain(migrate(server))
    Server.objects.filter(pk=server.pk).soft_delete()
    assert predicted(preflight(plan)) == [
        ("SKIPPED", f"Action was skipped automatically: Instance {server.uuid} not found")
    ]


def test_skipped_action_has_no_effect_and_is_counted_separately(source: ComputeNode) -> None:
    plan = chain(migrate(make_server("web", source), "compute2"), switch_off(source))
    first = plan.actions.order_by("pk")[0]
    first.skip("alice")
    first.save_state()
    found = preflight(plan)
    assert (outcomes(found), dict(found.ended)) == (["FAILED"], {"SKIPPED": 1})


@pytest.mark.parametrize(("on_failure", "expected"), [("continue", "SUCCEEDED"), ("stop", "FAILED")])
def test_dependents_of_a_foreseen_failure_fail_with_on_failure_stop(on_failure: str, expected: str) -> None:
    fails = ("nop", {"message": "a", "fail_execute": True})
    plan = chain(fails, ("nop", {"message": "b"}), ("nop", {"message": "c"}), on_failure=on_failure)
    found = preflight(plan)
    assert outcomes(found) == ["FAILED", expected, expected]
    if on_failure == "stop":
        reason = f"Action was not executed: action {action(plan, 'a').uuid}, which it depends on, failed."
        assert {prospect.foresight.message for prospect in found.prospects[1:]} == {reason}


def test_dependents_of_a_failed_derived_action_fail() -> None:
    plan = chain(("nop", {"message": "a", "fail_execute": True}), ("nop", {"message": "b"}))
    deriving = Action.objects.create(action_plan=plan, action_type="nop", has_derived=True)
    plan.actions.exclude(pk=deriving.pk).update(derived_from=deriving)
    ActionParent.objects.create(child=deriving, parent=action(plan, "b"))
    [_, (b, _), (last, message)] = predicted(preflight(plan))
    assert (b, last) == ("FAILED", "UNKNOWN")
    assert message == "It waits for actions that it derived. Its result after their end cannot be predicted."


@pytest.mark.parametrize("on_failure", ["continue", "stop"])
@pytest.mark.parametrize(
    ("switch", "outcome", "others", "said"),
    [
        ("skip_pre_condition", "SKIPPED", "SKIPPED", "The action that it was derived from was skipped"),
        ("fail_pre_condition", "FAILED", "FAILED", "which it depends on, failed."),
        ("none", "SUCCEEDED", "SKIPPED", "The action that it was derived from succeeded without it"),
    ],
)
def test_planned_actions_end_with_their_origin(
    switch: str, outcome: str, others: str, said: str, on_failure: str
) -> None:
    switches = {} if switch == "none" else {"a": {switch: True}}
    plan = plan_to_derive({"a": []}, {"a": {"x": [], "y": ["x"]}, "x": {"deep": []}}, switches, on_failure=on_failure)
    foreseen = preflight(plan)
    assert outcomes(foreseen) == [outcome, others, others, others]
    messages = {(prospect.action.uuid, prospect.foresight.message) for prospect in foreseen.prospects[1:]}
    assert all(said in str(message) for _, message in messages)
    run_waiting()
    planned = plan.actions.filter(is_planned=True)
    assert messages == set(planned.values_list("uuid", "status_message"))


def test_planned_actions_are_foreseen_but_not_their_waiting_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Nop, "foresee", lambda self: waits(self) if self.input_parameters["message"] == "a" else DONE)
    plan = plan_to_derive({"a": []}, {"a": {"x": []}}, {"x": {"fail_pre_condition": True}})
    [(a, said), (x, _)] = predicted(preflight(plan))
    assert (a, x) == ("UNKNOWN", "FAILED")
    assert said == "It waits for actions that it derives. Its result after their end cannot be predicted."


def test_actions_in_a_cycle_would_be_cancelled() -> None:
    plan = make_plan({"a": [], "b": ["c"], "c": ["b"]})
    assert predicted(preflight(plan)) == [
        ("SUCCEEDED", None),
        *[("CANCELLED", "Action was cancelled: its parents wait for each other.")] * 2,
    ]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (WithoutForesee, "The result of actions of type blind cannot be predicted."),
        (FailingForesee, "Its result cannot be predicted: the dry run failed with LookupError."),
        (UnforeseeableType, "It depends on the weather."),
    ],
)
def test_unforeseeable_action_is_unknown_and_not_executed(
    settings: Settings, kind: type[ActionType], message: str
) -> None:
    settings.ACTION_TYPES = [f"tests.plans.preflight.test_preflight.{kind.__name__}"]
    assert predicted(preflight(chain((kind.name, {"message": ""})))) == [("UNKNOWN", message)]


def under_way(found: Action, server: Server, **columns: Any) -> None:
    """Set an action to running, with its operation in the cloud begun."""
    found.begin()
    found.save_state()
    owner = f"{found.uuid}/{found.attempt}"
    Server.objects.filter(pk=server.pk).update(task_state="migrating", operation_owner=owner, **columns)


def test_running_action_is_completed_before_others(source: ComputeNode) -> None:
    first, second = (make_server(name, source) for name in ("first", "second"))
    plan = chain(migrate(first, "compute2"), migrate(second, "compute2"), state="ONGOING")
    under_way(plan.actions.order_by("pk")[0], first, destination=ComputeNode.objects.get(hostname="compute2"))
    assert predicted(preflight(plan)) == [("SUCCEEDED", None), ("FAILED", NO_CAPACITY)]


def test_running_action_that_is_already_done_is_not_repeated(source: ComputeNode) -> None:
    server = make_server("web", ComputeNode.objects.get(hostname="compute2"))
    plan = chain(migrate(server, "compute2"), state="ONGOING")
    plan.actions.update(input_parameters=migrate(server, "compute2")[1] | {"source_node": "compute1"})
    [found] = plan.actions.all()
    found.begin()
    found.save_state()
    assert outcomes(preflight(plan)) == ["SUCCEEDED"]


def test_action_on_a_busy_server_is_unknown_as_it_would_be_retried(source: ComputeNode) -> None:
    server = make_server("web", source, task_state="rebuilding", operation_owner="a person/1")
    assert predicted(preflight(chain(migrate(server)))) == [
        ("UNKNOWN", f"It would be tried again later: Instance {server.uuid} is busy: rebuilding")
    ]


def preflight_after(*transitions: str) -> Preflight:
    """Apply transitions to the only action of a plan, and return its preflight."""
    plan = chain(("nop", {"message": ""}), state="ONGOING")
    [found] = plan.actions.all()
    for transition in ("begin", *transitions):
        getattr(found, transition)()
        found.save_state()
    return preflight(plan)


def test_aborting_action_is_unknown() -> None:
    assert predicted(preflight_after("request_abort")) == [("UNKNOWN", "It is being aborted.")]


def test_action_with_a_cancel_signal_is_unknown() -> None:
    plan = chain(("nop", {"message": ""}), state="ONGOING")
    plan.actions.update(control=Action.Signal.CANCEL)
    assert predicted(preflight(plan)) == [("UNKNOWN", "It is being aborted.")]


def test_suspended_action_is_foreseen_as_resumed() -> None:
    assert predicted(preflight_after("suspend")) == [("SUCCEEDED", None)]


@pytest.mark.parametrize(
    ("answer", "foreseen"),
    [
        (Outcome(Answer.RETRY, "No luck"), ("UNKNOWN", "It would be tried again later: No luck")),
        (
            Outcome(Answer.WAIT, derived=[ProposedAction("nop", {"message": ""})]),
            ("UNKNOWN", "It derives actions, whose results cannot be predicted."),
        ),
        (Outcome(Answer.CANCEL, "No use."), ("CANCELLED", "Action execution cancelled. No use.")),
        (Outcome(Answer.TIMEOUT, "Too slow"), ("FAILED", "Action failed in execute: Too slow")),
    ],
)
def test_answers_of_foresee_have_the_outcomes_of_execute(
    monkeypatch: pytest.MonkeyPatch, answer: Outcome, foreseen: tuple[str, str]
) -> None:
    monkeypatch.setattr(Nop, "foresee", lambda self: answer)
    assert predicted(preflight(make_plan({"a": []}))) == [foreseen]


def test_action_without_retries_left_fails(source: ComputeNode, settings: Settings) -> None:
    server = make_server("web", source, task_state="rebuilding", operation_owner="a person/1")
    plan = chain(migrate(server))
    plan.actions.update(retries=settings.ACTION_RETRIES)
    [(outcome, message)] = predicted(preflight(plan))
    assert (outcome, str(message).partition(" (")[0]) == (
        "FAILED",
        "Action failed in execute: Exceeded maximum number of retries",
    )


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "CANCELLED", "SUPERSEDED", "CANCELLING"])
def test_preflight_of_an_ended_or_cancelling_plan_is_refused(state: str) -> None:
    with pytest.raises(Conflict, match=f"is {state}: nothing of it begins any more"):
        preflight(make_plan({"a": []}, state=state))


def test_actions_are_listed_in_the_order_of_one_worker() -> None:
    plan = make_plan({"a": [], "b": ["a"], "c": [], "d": ["c", "b"], "e": ["c"]})
    messages = [prospect.action.input_parameters["message"] for prospect in preflight(plan).prospects]
    assert messages == ["a", "c", "b", "e", "d"]


def test_preflight_of_a_mirrored_cloud_has_the_time_of_the_last_synchronization(settings: Settings) -> None:
    plan = make_plan({"a": []})
    assert (preflight(plan).is_mirrored, preflight(plan).read_at) == (False, None)
    settings.CLOUD = "tests.plans.preflight.test_preflight.MirroredCloud"
    assert (preflight(plan).is_mirrored, preflight(plan).read_at) == (True, None)
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    Synchronization.objects.create(pk=Synchronization.ONLY, succeeded_at=moment)
    assert preflight(plan).read_at == moment


def test_ended_actions_are_counted_without_being_read(source: ComputeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = chain(*(migrate(make_server(f"web-{number}", source)) for number in range(3)))
    first, second, _ = plan.actions.order_by("pk")
    plan.actions.filter(pk__in=[first.pk, second.pk]).update(state="SUCCEEDED")
    read, from_db = [], Action.from_db
    monkeypatch.setattr(Action, "from_db", lambda *columns: read.append(columns) or from_db(*columns))
    assert dict(preflight(plan).ended) == {"SUCCEEDED": 2}
    assert len(read) == 1


@pytest.mark.parametrize("size", [1, 5])
def test_query_count_does_not_depend_on_the_number_of_actions(django_assert_num_queries: Any, size: int) -> None:
    node = make_node()
    make_node("compute2")
    plan = chain(*(migrate(make_server(f"web-{number}", node)) for number in range(size)), switch_off(node))
    with django_assert_num_queries(12):
        assert set(outcomes(preflight(plan))) == {"SUCCEEDED"}


def test_stop_of_an_unknown_server_would_be_skipped() -> None:
    step = ("stop", {"resource_id": str(uuid4())})
    assert outcomes(preflight(chain(step))) == ["SKIPPED"]


def test_reason_of_a_skipped_action_is_formatted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    explained: list[BaseException] = []

    def count(problem: BaseException, **options: Any) -> str:
        explained.append(problem)
        return explain(problem, **options)

    monkeypatch.setattr(phases, "explain", count)
    inputs = {"migration_type": "live", "source_node": "compute1", "destination_node": "compute2"}
    plan = propose([ProposedAction("migrate", {"resource_id": str(uuid4()), **inputs}) for _ in range(3)])
    assert preflight(plan).counts["SKIPPED"] == 3
    assert len(explained) == 3
