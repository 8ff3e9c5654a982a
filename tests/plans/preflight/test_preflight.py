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


class Blind(Nop):
    """Says nothing of itself beforehand, unlike the type that it is made of."""

    name = "blind"

    def execute(self) -> Outcome:
        raise AssertionError("It was executed")


class Forgetful(ActionType):
    """Breaks off where it should foresee."""

    name, description, schema = "forgetful", "", {"type": "object"}

    def execute(self) -> Outcome:
        return DONE

    def foresee(self) -> Outcome:
        raise LookupError("a secret")


class Deriving(Forgetful):
    name = "deriving"

    def foresee(self) -> Outcome:
        raise CannotBeForeseen("It depends on the weather.")


class MirroredCloud(EmbeddedCloud):
    is_mirrored = True


def chain(*steps: Step, **columns: Any) -> ActionPlan:
    """Make a plan of actions that wait each for the one before."""
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


def test_of_two_migrations_into_one_last_free_slot_the_second_fails(source: ComputeNode) -> None:
    servers = [make_server(f"web-{number}", source) for number in range(2)]
    plan = chain(*(migrate(server, "compute2") for server in servers))
    assert predicted(preflight(plan)) == [("SUCCEEDED", None), ("FAILED", NO_CAPACITY)]


def test_so_it_is_where_the_cloud_chooses_the_node(source: ComputeNode) -> None:
    servers = [make_server(f"web-{number}", source) for number in range(2)]
    plan = chain(*map(migrate, servers))
    [_, (outcome, message)] = predicted(preflight(plan))
    assert (outcome, message) == (
        "FAILED",
        "Action failed in execute: No valid host was found. There are not enough hosts available.",
    )


def test_nothing_is_executed_and_nothing_written(source: ComputeNode) -> None:
    server = make_server("web", source)
    plan = chain(migrate(server, "compute2"), switch_off(source))
    before = list(Action.objects.values()), list(Server.objects.values()), list(ComputeNode.objects.values())
    assert outcomes(preflight(plan)) == ["SUCCEEDED", "SUCCEEDED"]
    after = list(Action.objects.values()), list(Server.objects.values()), list(ComputeNode.objects.values())
    assert before == after


def test_a_node_that_still_has_running_servers_is_not_switched_off(source: ComputeNode) -> None:
    servers = [make_server(f"web-{number}", source) for number in range(2)]
    plan = chain(migrate(servers[0], "compute2"), switch_off(source))
    assert predicted(preflight(plan))[1] == (
        "FAILED",
        "Action failed in execute: Compute node compute1 has 1 running server",
    )


def test_what_is_gone_would_be_skipped(source: ComputeNode) -> None:
    server = make_server("web", source)
    plan = chain(migrate(server))
    Server.objects.filter(pk=server.pk).soft_delete()
    assert predicted(preflight(plan)) == [
        ("SKIPPED", f"Action was skipped automatically: Instance {server.uuid} not found")
    ]


def test_what_a_person_skipped_has_no_effect_and_is_counted_apart(source: ComputeNode) -> None:
    plan = chain(migrate(make_server("web", source), "compute2"), switch_off(source))
    first = plan.actions.order_by("pk")[0]
    first.skip("alice")
    first.save_state()
    found = preflight(plan)
    assert (outcomes(found), dict(found.ended)) == (["FAILED"], {"SKIPPED": 1})


@pytest.mark.parametrize(("on_failure", "expected"), [("continue", "SUCCEEDED"), ("stop", "FAILED")])
def test_what_depends_on_a_foreseen_failure_fails_where_the_plan_says_stop(on_failure: str, expected: str) -> None:
    fails = ("nop", {"message": "a", "fail_execute": True})
    plan = chain(fails, ("nop", {"message": "b"}), ("nop", {"message": "c"}), on_failure=on_failure)
    found = preflight(plan)
    assert outcomes(found) == ["FAILED", expected, expected]
    if on_failure == "stop":
        reason = f"Action was not executed: action {action(plan, 'a').uuid}, which it depends on, failed."
        assert {prospect.foresight.message for prospect in found.prospects[1:]} == {reason}


def test_among_derived_actions_a_failure_ends_what_depends_on_it() -> None:
    plan = chain(("nop", {"message": "a", "fail_execute": True}), ("nop", {"message": "b"}))
    deriving = Action.objects.create(action_plan=plan, action_type="nop", has_derived=True)
    plan.actions.exclude(pk=deriving.pk).update(derived_from=deriving)
    ActionParent.objects.create(child=deriving, parent=action(plan, "b"))
    [_, (b, _), (last, message)] = predicted(preflight(plan))
    assert (b, last) == ("FAILED", "UNKNOWN")
    assert message == "It waits for actions that it derived, and what it does then is not foreseen."


@pytest.mark.parametrize("on_failure", ["continue", "stop"])
@pytest.mark.parametrize(
    ("switch", "outcome", "others", "said"),
    [
        ("skip_pre_condition", "SKIPPED", "SKIPPED", "The action that it was derived from was skipped"),
        ("fail_pre_condition", "FAILED", "FAILED", "which it depends on, failed."),
        ("none", "SUCCEEDED", "SKIPPED", "The action that it was derived from succeeded without it"),
    ],
)
def test_what_was_planned_ends_as_it_would_with_its_action(
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


def test_what_was_planned_is_foreseen_and_the_action_that_waits_for_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Nop, "foresee", lambda self: waits(self) if self.input_parameters["message"] == "a" else DONE)
    plan = plan_to_derive({"a": []}, {"a": {"x": []}}, {"x": {"fail_pre_condition": True}})
    [(a, said), (x, _)] = predicted(preflight(plan))
    assert (a, x) == ("UNKNOWN", "FAILED")
    assert said == "It waits for actions that it derives, and what it does then is not foreseen."


def test_actions_that_wait_for_each_other_would_be_cancelled() -> None:
    plan = make_plan({"a": [], "b": ["c"], "c": ["b"]})
    assert predicted(preflight(plan)) == [
        ("SUCCEEDED", None),
        *[("CANCELLED", "Action was cancelled: its parents wait for each other.")] * 2,
    ]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Blind, "What actions of type blind do is not foreseen."),
        (Forgetful, "What it would do is not foreseen: that broke off with LookupError."),
        (Deriving, "It depends on the weather."),
    ],
)
def test_what_cannot_be_foreseen_is_said_so_and_not_executed(
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


def test_what_is_at_work_comes_to_its_end_first(source: ComputeNode) -> None:
    first, second = (make_server(name, source) for name in ("first", "second"))
    plan = chain(migrate(first, "compute2"), migrate(second, "compute2"), state="ONGOING")
    under_way(plan.actions.order_by("pk")[0], first, destination=ComputeNode.objects.get(hostname="compute2"))
    assert predicted(preflight(plan)) == [("SUCCEEDED", None), ("FAILED", NO_CAPACITY)]


def test_what_is_at_work_and_done_already_is_not_done_twice(source: ComputeNode) -> None:
    server = make_server("web", ComputeNode.objects.get(hostname="compute2"))
    plan = chain(migrate(server, "compute2"), state="ONGOING")
    plan.actions.update(input_parameters=migrate(server, "compute2")[1] | {"source_node": "compute1"})
    [found] = plan.actions.all()
    found.begin()
    found.save_state()
    assert outcomes(preflight(plan)) == ["SUCCEEDED"]


def test_what_somebody_else_is_at_work_on_would_be_tried_again(source: ComputeNode) -> None:
    server = make_server("web", source, task_state="rebuilding", operation_owner="a person/1")
    assert predicted(preflight(chain(migrate(server)))) == [
        ("UNKNOWN", f"It would be tried again later: Instance {server.uuid} is busy: rebuilding")
    ]


def at_work(*transitions: str) -> Preflight:
    """Apply transitions to the only action of a plan, and return its preflight."""
    plan = chain(("nop", {"message": ""}), state="ONGOING")
    [found] = plan.actions.all()
    for transition in ("begin", *transitions):
        getattr(found, transition)()
        found.save_state()
    return preflight(plan)


def test_what_is_being_aborted_is_not_foreseen() -> None:
    assert predicted(at_work("request_abort")) == [("UNKNOWN", "It is being aborted.")]


def test_nor_is_the_end_of_an_action_with_a_signal_to_cancel() -> None:
    plan = chain(("nop", {"message": ""}), state="ONGOING")
    plan.actions.update(control=Action.Signal.CANCEL)
    assert predicted(preflight(plan)) == [("UNKNOWN", "It is being aborted.")]


def test_what_is_suspended_counts_as_if_it_went_on() -> None:
    assert predicted(at_work("suspend")) == [("SUCCEEDED", None)]


@pytest.mark.parametrize(
    ("answer", "foreseen"),
    [
        (Outcome(Answer.RETRY, "No luck"), ("UNKNOWN", "It would be tried again later: No luck")),
        (
            Outcome(Answer.WAIT, derived=[ProposedAction("nop", {"message": ""})]),
            ("UNKNOWN", "It derives actions, and what these do is not foreseen."),
        ),
        (Outcome(Answer.CANCEL, "No use."), ("CANCELLED", "Action execution cancelled. No use.")),
        (Outcome(Answer.TIMEOUT, "Too slow"), ("FAILED", "Action failed in execute: Too slow")),
    ],
)
def test_each_answer_is_taken_as_from_execute(
    monkeypatch: pytest.MonkeyPatch, answer: Outcome, foreseen: tuple[str, str]
) -> None:
    monkeypatch.setattr(Nop, "foresee", lambda self: answer)
    assert predicted(preflight(make_plan({"a": []}))) == [foreseen]


def test_what_was_deferred_too_often_fails(source: ComputeNode, settings: Settings) -> None:
    server = make_server("web", source, task_state="rebuilding", operation_owner="a person/1")
    plan = chain(migrate(server))
    plan.actions.update(retries=settings.ACTION_RETRIES)
    [(outcome, message)] = predicted(preflight(plan))
    assert (outcome, str(message).partition(" (")[0]) == (
        "FAILED",
        "Action failed in execute: Exceeded maximum number of retries",
    )


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "CANCELLED", "SUPERSEDED", "CANCELLING"])
def test_of_a_plan_that_begins_nothing_more_nothing_is_foreseen(state: str) -> None:
    with pytest.raises(Conflict, match=f"is {state}: nothing of it begins any more"):
        preflight(make_plan({"a": []}, state=state))


def test_the_order_is_that_of_one_worker() -> None:
    plan = make_plan({"a": [], "b": ["a"], "c": [], "d": ["c", "b"], "e": ["c"]})
    messages = [prospect.action.input_parameters["message"] for prospect in preflight(plan).prospects]
    assert messages == ["a", "c", "b", "e", "d"]


def test_what_mirrors_a_cloud_says_when_that_was_read(settings: Settings) -> None:
    plan = make_plan({"a": []})
    assert (preflight(plan).is_mirrored, preflight(plan).read_at) == (False, None)
    settings.CLOUD = "tests.plans.preflight.test_preflight.MirroredCloud"
    assert (preflight(plan).is_mirrored, preflight(plan).read_at) == (True, None)
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    Synchronization.objects.create(pk=Synchronization.ONLY, succeeded_at=moment)
    assert preflight(plan).read_at == moment


def test_what_has_ended_is_counted_and_not_read(source: ComputeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = chain(*(migrate(make_server(f"web-{number}", source)) for number in range(3)))
    first, second, _ = plan.actions.order_by("pk")
    plan.actions.filter(pk__in=[first.pk, second.pk]).update(state="SUCCEEDED")
    read, from_db = [], Action.from_db
    monkeypatch.setattr(Action, "from_db", lambda *columns: read.append(columns) or from_db(*columns))
    assert dict(preflight(plan).ended) == {"SUCCEEDED": 2}
    assert len(read) == 1


@pytest.mark.parametrize("size", [1, 5])
def test_the_number_of_queries_does_not_grow_with_the_plan(django_assert_num_queries: Any, size: int) -> None:
    node = make_node()
    make_node("compute2")
    plan = chain(*(migrate(make_server(f"web-{number}", node)) for number in range(size)), switch_off(node))
    with django_assert_num_queries(12):
        assert set(outcomes(preflight(plan))) == {"SUCCEEDED"}


def test_an_unknown_server_is_no_trouble() -> None:
    step = ("stop", {"resource_id": str(uuid4())})
    assert outcomes(preflight(chain(step))) == ["SKIPPED"]


def test_the_reason_of_each_action_that_would_not_run_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    explained: list[BaseException] = []

    def count(problem: BaseException, **options: Any) -> str:
        explained.append(problem)
        return explain(problem, **options)

    monkeypatch.setattr(phases, "explain", count)
    inputs = {"migration_type": "live", "source_node": "compute1", "destination_node": "compute2"}
    plan = propose([ProposedAction("migrate", {"resource_id": str(uuid4()), **inputs}) for _ in range(3)])
    assert preflight(plan).counts["SKIPPED"] == 3
    assert len(explained) == 3
