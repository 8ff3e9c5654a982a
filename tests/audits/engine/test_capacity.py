"""Pending servers trigger the capacity audit, whose plan frees capacity for them and builds them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from actions.models import Action
from audits.engine.capacity import on_server_pending, request_capacity_audit
from audits.engine.engine import DecisionEngine
from audits.models import Audit
from cluster.drivers.base import NoValidHost, cloud
from cluster.drivers.embedded import EmbeddedCloud
from cluster.models import Server, ServerWait, Stack
from plans.models import ActionPlan
from plans.preflight import preflight
from tests.actions.types.clusters.test_cluster_updates import run_ready_actions
from tests.actions.types.stacks.builders import proposed, server, template
from tests.api import Caller
from tests.audits.engine.test_engine_races import at_once
from tests.builders import make_flavor, make_node, make_server
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def pending_state(settings: Settings) -> None:
    settings.USE_PENDING_STATE = True


def pending_server(name: str = "w", **columns: Any) -> Server:
    return make_server(name, state="pending", **columns)


def again(row: Any) -> Any:
    return type(row).objects.get(pk=row.pk)


def decide() -> ActionPlan | None:
    """Run a decision engine until it has no work, and return the newest plan."""
    engine = DecisionEngine()
    while engine.run_next_audit():
        pass
    plan: ActionPlan | None = ActionPlan.objects.order_by("pk").last()
    return plan


# When an audit runs


def test_pending_server_triggers_the_capacity_audit_which_recommends_a_plan() -> None:
    make_node()
    pending_server()
    on_server_pending()
    audit = Audit.objects.get()
    assert (audit.audit_type, audit.goal.name, audit.auto_trigger) == ("EVENT", "capacity", False)
    plan = decide()
    assert plan
    assert (plan.state, plan.audit, plan.strategy.name) == ("RECOMMENDED", audit, "make_room")


def test_failed_scheduling_triggers_the_capacity_audit(django_capture_on_commit_callbacks: Any) -> None:
    server = make_server(state="building")
    with django_capture_on_commit_callbacks(execute=True), pytest.raises(NoValidHost):
        cloud().build_server(str(server.uuid))
    assert Audit.objects.get().next_run_time is not None


def test_capacity_audit_is_not_requested_without_use_pending_state(settings: Settings) -> None:
    settings.USE_PENDING_STATE = False
    pending_server()
    assert not request_capacity_audit()
    assert not Audit.objects.exists()


def test_capacity_audit_is_not_requested_without_pending_servers() -> None:
    make_server(state="error")
    assert not request_capacity_audit()
    assert not Audit.objects.exists()


def test_decision_engine_finds_pending_servers_without_a_signal() -> None:
    make_node()
    pending_server()
    assert decide() is not None


def test_one_run_of_the_capacity_audit_serves_all_pending_servers() -> None:
    make_node()
    for name in "abc":
        pending_server(name)
        on_server_pending()
    plan = decide()
    assert plan
    assert (Audit.objects.count(), ActionPlan.objects.count(), plan.actions.count()) == (1, 1, 3)


@pytest.mark.parametrize("state", ["RECOMMENDED", "PENDING", "ONGOING"])
def test_capacity_audit_is_not_requested_again_for_servers_of_an_unfinished_plan(state: str) -> None:
    make_node()
    pending_server()
    plan = decide()
    ActionPlan.objects.update(state=state)
    assert not request_capacity_audit()
    assert decide() == plan


def test_recommended_capacity_plan_is_superseded_when_another_server_is_pending() -> None:
    make_node()
    pending_server("first")
    older = decide()
    pending_server("second")
    newer = decide()
    assert newer
    assert (again(older).state, newer.state, newer.actions.count()) == ("SUPERSEDED", "RECOMMENDED", 2)


def test_capacity_audit_for_a_newer_server_waits_for_the_ongoing_plan() -> None:
    make_node()
    pending_server("first")
    running = decide()
    ActionPlan.objects.update(state="ONGOING")
    pending_server("second")
    assert request_capacity_audit()
    assert decide() == running
    assert "is ongoing" in (Audit.objects.get().status_message or "")
    ActionPlan.objects.update(state="SUCCEEDED")
    Audit.objects.update(next_run_time="2000-01-01T00:00:00Z")
    following = decide()
    assert following
    assert following != running


def test_capacity_audit_is_requested_again_after_a_failed_plan_and_a_pause() -> None:
    make_node()
    pending_server()
    decide()
    ActionPlan.objects.update(state="FAILED")
    ServerWait.objects.update(had_host=True)
    assert not request_capacity_audit()
    end_pauses()
    assert request_capacity_audit()


def test_pauses_between_capacity_searches_grow_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pending_server()
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    pauses = []
    for _ in range(8):
        assert request_capacity_audit()
        Audit.objects.update(state="PENDING", next_run_time=None)
        wait = ServerWait.objects.get()
        pauses.append((wait.next_search - now).total_seconds() / 30)
        end_pauses()
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]


def test_pauses_between_capacity_searches_are_counted_for_each_server() -> None:
    make_node(vcpus=1)
    pending_server("first")
    decide()
    pending_server("second")
    assert request_capacity_audit()
    decide()
    assert list(ServerWait.objects.order_by("pk").values_list("searches", flat=True)) == [1, 1]


def test_next_capacity_search_is_due_at_the_pending_timeout(settings: Settings) -> None:
    settings.PENDING_TIMEOUT = timedelta(seconds=10)
    make_node(vcpus=1)
    pending_server()
    decide()
    wait = ServerWait.objects.get()
    assert wait.next_search == wait.since + timedelta(seconds=10)


def test_server_without_capacity_stays_pending_within_the_pending_timeout() -> None:
    make_node(vcpus=1)
    server = pending_server()
    plan = decide()
    assert plan
    assert (plan.state, plan.actions.count(), again(server).state) == ("SUCCEEDED", 0, "pending")


def test_freed_capacity_ends_the_pause_between_searches() -> None:
    node = make_node(vcpus=2)
    other = make_server("other", node)
    server = pending_server()
    decide()
    assert not request_capacity_audit()
    Server.objects.filter(pk=other.pk).soft_delete()
    plan = decide()
    assert plan
    assert launch_and_run(plan).state == "SUCCEEDED"
    assert again(server).state == "active"


def test_freed_capacity_supersedes_a_recommended_plan_that_gives_up() -> None:
    node = make_node(vcpus=2)
    other = make_server("other", node)
    server = pending_server()
    given_up = plan_that_gives_up()
    assert not request_capacity_audit()
    Server.objects.filter(pk=other.pk).soft_delete()
    plan = decide()
    assert plan
    assert (again(given_up).state, list(plan.actions.values_list("action_type", flat=True))) == (
        "SUPERSEDED",
        ["rebuild"],
    )
    assert again(server).state == "pending"


def test_freed_capacity_for_one_server_triggers_one_search() -> None:
    node = make_node(vcpus=2)
    other = make_server("other", node)
    pending_server("first")
    pending_server("second")
    decide()
    Server.objects.filter(pk=other.pk).soft_delete()
    assert decide()
    assert not request_capacity_audit()


def test_reset_state_is_skipped_if_a_node_has_capacity_and_the_server_is_built_by_the_next_plan() -> None:
    node = make_node(vcpus=2)
    other = make_server("other", node)
    server = pending_server()
    given_up = plan_that_gives_up()
    Server.objects.filter(pk=other.pk).soft_delete()
    done = launch_and_run(given_up)
    assert outcomes(done) == {"reset_state": "SKIPPED"}
    assert done.actions.get().status_message.endswith(f"{node.hostname} has capacity for it")
    assert launch_and_run(decide()).state == "SUCCEEDED"
    assert again(server).state == "active"


def test_server_wait_is_deleted_with_its_server(api: Caller) -> None:
    make_node(vcpus=1)
    pending_server()
    request_capacity_audit()
    assert ServerWait.objects.exists()
    Server.objects.all().soft_delete()
    assert not request_capacity_audit()
    assert not ServerWait.objects.exists()


def test_server_wait_is_kept_while_its_server_is_building() -> None:
    server = pending_server()
    request_capacity_audit()
    Server.objects.filter(pk=server.pk).update(state="building")
    pending_server("second")
    request_capacity_audit()
    assert ServerWait.objects.filter(server=server).exists()


def test_query_count_of_request_capacity_audit_does_not_depend_on_the_number_of_servers(
    django_assert_num_queries: Any,
) -> None:
    make_node(vcpus=1)
    pending_server("w")
    decide()
    with CaptureQueriesContext(connection) as one:
        request_capacity_audit()
    for number in range(20):
        pending_server(f"w{number}")
    decide()
    with django_assert_num_queries(len(one)):
        request_capacity_audit()


def test_capacity_audit_is_not_requested_without_make_room(settings: Settings) -> None:
    settings.MAKE_ROOM = False
    pending_server()
    on_server_pending()
    assert not request_capacity_audit()
    assert not Audit.objects.exists()


def end_pauses() -> None:
    ServerWait.objects.update(next_search="2000-01-01T00:00:00Z")


def plan_that_gives_up() -> ActionPlan:
    """Return an unstarted plan that resets a server to ERROR, because it has been pending too long."""
    request_capacity_audit()
    ServerWait.objects.update(since="2000-01-01T00:00:00Z")
    plan = decide()
    assert plan
    assert list(plan.actions.values_list("action_type", flat=True)) == ["reset_state"]
    return plan


def test_failed_capacity_audit_is_replaced_after_a_pause() -> None:
    pending_server()
    assert decide() is None
    assert Audit.objects.get().state == "FAILED"
    assert not request_capacity_audit()
    Audit.objects.update(updated_at="2000-01-01T00:00:00Z")
    end_pauses()
    assert request_capacity_audit()
    assert Audit.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_concurrent_requests_create_one_capacity_audit() -> None:
    pending_server()
    assert sorted(at_once(*[request_capacity_audit] * 4)) == [False, False, False, True]
    assert Audit.objects.count() == 1


# From the creation of a server to its last state


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    make_flavor("large", vcpus=10, memory=2048, disk=20)
    return Caller(cloud_admin, "1.10")


@pytest.fixture
def crowded() -> Server:
    """A server of 8 vCPUs on a node of 16 vCPUs, which can migrate to a node with 8 of 16 vCPUs free."""
    here, there = make_node("here"), make_node("there")
    make_server("stays", there, vcpus=8, state="stopped")
    return make_server("moves", here, vcpus=8)


def create_pending(api: Caller) -> str:
    made = api.post("/servers", {"server": {"name": "web", "flavorRef": "large"}})
    run_waiting()
    return str(made.json()["id"])


def shown(api: Caller, server: str) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"/servers/{server}").json()
    return found


def launch_and_run(plan: ActionPlan | None) -> ActionPlan:
    assert plan
    plan.launch()
    run_waiting()
    done: ActionPlan = again(plan)
    return done


def outcomes(plan: ActionPlan) -> dict[str, str]:
    return dict(plan.actions.values_list("action_type", "state"))


def test_pending_server_is_active_after_the_plan_has_freed_capacity(api: Caller, crowded: Server) -> None:
    server = create_pending(api)
    assert shown(api, server)["status"] == "PENDING"
    plan = launch_and_run(decide())
    assert (plan.state, outcomes(plan)) == ("SUCCEEDED", {"migrate": "SUCCEEDED", "rebuild": "SUCCEEDED"})
    found = shown(api, server)
    assert (found["status"], found["OS-EXT-SRV-ATTR:host"]) == ("ACTIVE", "here")
    assert again(crowded).node.hostname == "there"


def test_preflight_predicts_success_of_a_capacity_plan(api: Caller, crowded: Server) -> None:
    create_pending(api)
    plan = decide()
    assert plan
    foreseen = {found.action.action_type: found.foresight for found in preflight(plan).prospects}
    assert {kind: found.state for kind, found in foreseen.items() if found} == {
        "migrate": "SUCCEEDED",
        "rebuild": "SUCCEEDED",
    }


def test_capacity_plan_starts_automatically_with_make_room_auto_trigger(
    api: Caller, crowded: Server, settings: Settings
) -> None:
    settings.MAKE_ROOM_AUTO_TRIGGER = True
    server = create_pending(api)
    decide()
    run_waiting()
    assert shown(api, server)["status"] == "ACTIVE"


def test_stack_is_created_after_capacity_was_freed_for_its_server(crowded: Server, settings: Settings) -> None:
    settings.MAKE_ROOM_AUTO_TRIGGER, settings.ACTION_RETRY_INTERVAL = True, 0.2
    make_flavor("large", vcpus=10, memory=2048, disk=20)
    stack = Stack.objects.create(name="shop", template=template(web=server("large")))
    create = proposed("create_stack", stack)
    run_ready_actions()
    assert again(stack).status == "CREATE_IN_PROGRESS"
    decide()
    run_waiting()
    assert (again(create).state, again(stack).status) == ("SUCCEEDED", "CREATE_COMPLETE")


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_deletion_of_a_pending_server_skips_the_remaining_actions_of_its_plan(
    api: Caller, crowded: Server, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = create_pending(api)
    plan = decide()
    if when == "before":
        assert api.delete(f"/servers/{server}").status_code == 204
    else:
        delete_after_a_migration(monkeypatch, lambda: api.delete(f"/servers/{server}"))
    plan = launch_and_run(plan)
    left_out = plan.actions.filter(state="SKIPPED")
    assert plan.state == "SUCCEEDED"
    assert {action.action_type for action in left_out} == ({"migrate", "rebuild"} if when == "before" else {"rebuild"})
    assert all("no longer exists" in action.status_message for action in left_out)


def delete_after_a_migration(monkeypatch: pytest.MonkeyPatch, delete: Callable[[], object]) -> None:
    migrate = EmbeddedCloud.live_migrate

    def migrate_and_delete(*arguments: Any) -> None:
        migrate(*arguments)
        delete()

    monkeypatch.setattr(EmbeddedCloud, "live_migrate", migrate_and_delete)


def test_server_without_possible_capacity_is_in_error_with_the_reason_as_fault(api: Caller) -> None:
    make_node(vcpus=4)
    server = create_pending(api)
    plan = launch_and_run(plan_that_gives_up())
    found = shown(api, server)
    assert (plan.state, found["status"]) == ("SUCCEEDED", "ERROR")
    size = "10 VCPUs, 2048 MB of memory and 20 GB of disk"
    assert found["fault"]["message"] == f"No capacity can be provided for {size}."


def test_server_stays_pending_for_the_next_plan_if_its_capacity_was_taken(api: Caller, crowded: Server) -> None:
    server = create_pending(api)
    plan = decide()
    taken = make_server("quicker", crowded.node, vcpus=8)
    assert launch_and_run(plan).state == "FAILED"
    assert shown(api, server)["status"] == "PENDING"
    Server.objects.filter(pk=taken.pk).soft_delete()
    launch_and_run(decide())
    assert shown(api, server)["status"] == "ACTIVE"
    assert Action.objects.filter(input_parameters__resource_id=str(UUID(server)), action_type="rebuild").count() == 2
