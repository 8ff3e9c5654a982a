"""Servers that wait for capacity: they have an audit run, whose plan serves all of them, in the end."""

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


def waits(name: str = "w", **columns: Any) -> Server:
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


def test_a_server_that_waits_has_the_audit_made_and_run_which_proposes_a_plan() -> None:
    make_node()
    waits()
    on_server_pending()
    audit = Audit.objects.get()
    assert (audit.audit_type, audit.goal.name, audit.auto_trigger) == ("EVENT", "capacity", False)
    plan = decide()
    assert plan
    assert (plan.state, plan.audit, plan.strategy.name) == ("RECOMMENDED", audit, "make_room")


def test_a_server_that_becomes_pending_has_the_audit_run(django_capture_on_commit_callbacks: Any) -> None:
    server = make_server(state="building")
    with django_capture_on_commit_callbacks(execute=True), pytest.raises(NoValidHost):
        cloud().build_server(str(server.uuid))
    assert Audit.objects.get().next_run_time is not None


def test_without_the_setting_no_audit_is_requested(settings: Settings) -> None:
    settings.USE_PENDING_STATE = False
    waits()
    assert not request_capacity_audit()
    assert not Audit.objects.exists()


def test_without_servers_that_wait_no_audit_is_requested() -> None:
    make_server(state="error")
    assert not request_capacity_audit()
    assert not Audit.objects.exists()


def test_servers_that_nobody_reported_are_found_by_an_engine() -> None:
    make_node()
    waits()
    assert decide() is not None


def test_many_servers_share_one_run() -> None:
    make_node()
    for name in "abc":
        waits(name)
        on_server_pending()
    plan = decide()
    assert plan
    assert (Audit.objects.count(), ActionPlan.objects.count(), plan.actions.count()) == (1, 1, 3)


@pytest.mark.parametrize("state", ["RECOMMENDED", "PENDING", "ONGOING"])
def test_no_audit_is_requested_again_for_servers_that_a_plan_serves(state: str) -> None:
    make_node()
    waits()
    plan = decide()
    ActionPlan.objects.update(state=state)
    assert not request_capacity_audit()
    assert decide() == plan


def test_a_plan_that_nobody_started_is_superseded_by_one_that_serves_newer_servers_too() -> None:
    make_node()
    waits("first")
    older = decide()
    waits("second")
    newer = decide()
    assert newer
    assert (again(older).state, newer.state, newer.actions.count()) == ("SUPERSEDED", "RECOMMENDED", 2)


def test_servers_that_come_while_a_plan_runs_have_the_audit_run_when_it_has_ended() -> None:
    make_node()
    waits("first")
    running = decide()
    ActionPlan.objects.update(state="ONGOING")
    waits("second")
    assert request_capacity_audit()
    assert decide() == running
    assert "is ongoing" in (Audit.objects.get().status_message or "")
    ActionPlan.objects.update(state="SUCCEEDED")
    Audit.objects.update(next_run_time="2000-01-01T00:00:00Z")
    following = decide()
    assert following
    assert following != running


def test_a_server_whose_building_failed_is_searched_for_again_after_a_pause() -> None:
    make_node()
    waits()
    decide()
    ActionPlan.objects.update(state="FAILED")
    ServerWait.objects.update(had_host=True)
    assert not request_capacity_audit()
    let_pauses_end()
    assert request_capacity_audit()


def test_the_pauses_between_searches_grow_up_to_a_bound_and_are_kept_in_the_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits()
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    pauses = []
    for _ in range(8):
        assert request_capacity_audit()
        Audit.objects.update(state="PENDING", next_run_time=None)
        wait = ServerWait.objects.get()
        pauses.append((wait.next_search - now).total_seconds() / 30)
        let_pauses_end()
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]


def test_each_server_has_pauses_of_its_own() -> None:
    make_node(vcpus=1)
    waits("first")
    decide()
    waits("second")
    assert request_capacity_audit()
    decide()
    assert list(ServerWait.objects.order_by("pk").values_list("searches", flat=True)) == [1, 1]


def test_a_search_comes_when_the_time_to_give_up_comes(settings: Settings) -> None:
    settings.PENDING_TIMEOUT = timedelta(seconds=10)
    make_node(vcpus=1)
    waits()
    decide()
    wait = ServerWait.objects.get()
    assert wait.next_search == wait.since + timedelta(seconds=10)


def test_a_server_is_not_given_up_within_the_limit() -> None:
    make_node(vcpus=1)
    server = waits()
    plan = decide()
    assert plan
    assert (plan.state, plan.actions.count(), again(server).state) == ("SUCCEEDED", 0, "pending")


def test_a_free_place_ends_the_pause() -> None:
    node = make_node(vcpus=2)
    other = make_server("other", node)
    server = waits()
    decide()
    assert not request_capacity_audit()
    Server.objects.filter(pk=other.pk).soft_delete()
    plan = decide()
    assert plan
    assert start(plan).state == "SUCCEEDED"
    assert again(server).state == "active"


def test_a_free_place_supersedes_a_plan_to_give_up_that_nobody_started() -> None:
    node = make_node(vcpus=2)
    other = make_server("other", node)
    server = waits()
    given_up = plan_to_give_up()
    assert not request_capacity_audit()
    Server.objects.filter(pk=other.pk).soft_delete()
    plan = decide()
    assert plan
    assert (again(given_up).state, list(plan.actions.values_list("action_type", flat=True))) == (
        "SUPERSEDED",
        ["rebuild"],
    )
    assert again(server).state == "pending"


def test_a_free_place_that_is_kept_for_another_server_is_searched_for_once() -> None:
    node = make_node(vcpus=2)
    other = make_server("other", node)
    waits("first")
    waits("second")
    decide()
    Server.objects.filter(pk=other.pk).soft_delete()
    assert decide()
    assert not request_capacity_audit()


def test_a_plan_to_give_up_that_runs_when_there_is_a_free_place_is_skipped_and_the_server_built_then() -> None:
    node = make_node(vcpus=2)
    other = make_server("other", node)
    server = waits()
    given_up = plan_to_give_up()
    Server.objects.filter(pk=other.pk).soft_delete()
    done = start(given_up)
    assert outcomes(done) == {"reset_state": "SKIPPED"}
    assert done.actions.get().status_message.endswith(f"{node.hostname} has capacity for it")
    assert start(decide()).state == "SUCCEEDED"
    assert again(server).state == "active"


def test_a_wait_ends_with_its_server(api: Caller) -> None:
    make_node(vcpus=1)
    waits()
    request_capacity_audit()
    assert ServerWait.objects.exists()
    Server.objects.all().soft_delete()
    assert not request_capacity_audit()
    assert not ServerWait.objects.exists()


def test_a_wait_goes_on_while_its_server_is_being_built() -> None:
    server = waits()
    request_capacity_audit()
    Server.objects.filter(pk=server.pk).update(state="building")
    waits("second")
    request_capacity_audit()
    assert ServerWait.objects.filter(server=server).exists()


def test_a_look_takes_as_many_queries_for_any_number_of_servers(django_assert_num_queries: Any) -> None:
    make_node(vcpus=1)
    waits("w")
    decide()
    with CaptureQueriesContext(connection) as one:
        request_capacity_audit()
    for number in range(20):
        waits(f"w{number}")
    decide()
    with django_assert_num_queries(len(one)):
        request_capacity_audit()


def test_where_a_service_outside_of_the_site_makes_capacity_no_audit_runs(settings: Settings) -> None:
    settings.MAKE_ROOM = False
    waits()
    on_server_pending()
    assert not request_capacity_audit()
    assert not Audit.objects.exists()


def let_pauses_end() -> None:
    ServerWait.objects.update(next_search="2000-01-01T00:00:00Z")


def plan_to_give_up() -> ActionPlan:
    """Return an unstarted plan to give up a server that has waited too long."""
    request_capacity_audit()
    ServerWait.objects.update(since="2000-01-01T00:00:00Z")
    plan = decide()
    assert plan
    assert list(plan.actions.values_list("action_type", flat=True)) == ["reset_state"]
    return plan


def test_when_the_audit_has_failed_another_one_is_made_but_not_at_once() -> None:
    waits()
    assert decide() is None
    assert Audit.objects.get().state == "FAILED"
    assert not request_capacity_audit()
    Audit.objects.update(updated_at="2000-01-01T00:00:00Z")
    let_pauses_end()
    assert request_capacity_audit()
    assert Audit.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_those_who_ask_at_once_make_one_audit_with_one_run() -> None:
    waits()
    assert sorted(at_once(*[request_capacity_audit] * 4)) == [False, False, False, True]
    assert Audit.objects.count() == 1


# From the request to its end


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    make_flavor("large", vcpus=10, memory=2048, disk=20)
    return Caller(cloud_admin, "1.10")


@pytest.fixture
def crowded() -> Server:
    """A server of 8 vCPUs on a node of 16, which could go to where 8 of 16 are free."""
    here, there = make_node("here"), make_node("there")
    make_server("stays", there, vcpus=8, state="stopped")
    return make_server("moves", here, vcpus=8)


def ask_for(api: Caller) -> str:
    made = api.post("/servers", {"server": {"name": "web", "flavorRef": "large"}})
    run_waiting()
    return str(made.json()["id"])


def shown(api: Caller, server: str) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"/servers/{server}").json()
    return found


def start(plan: ActionPlan | None) -> ActionPlan:
    assert plan
    plan.launch()
    run_waiting()
    done: ActionPlan = again(plan)
    return done


def outcomes(plan: ActionPlan) -> dict[str, str]:
    return dict(plan.actions.values_list("action_type", "state"))


def test_a_server_that_found_no_host_runs_when_the_plan_has_freed_capacity(api: Caller, crowded: Server) -> None:
    server = ask_for(api)
    assert shown(api, server)["status"] == "PENDING"
    plan = start(decide())
    assert (plan.state, outcomes(plan)) == ("SUCCEEDED", {"migrate": "SUCCEEDED", "rebuild": "SUCCEEDED"})
    found = shown(api, server)
    assert (found["status"], found["OS-EXT-SRV-ATTR:host"]) == ("ACTIVE", "here")
    assert again(crowded).node.hostname == "there"


def test_a_preflight_foresees_that_the_plan_makes_room(api: Caller, crowded: Server) -> None:
    ask_for(api)
    plan = decide()
    assert plan
    foreseen = {found.action.action_type: found.foresight for found in preflight(plan).prospects}
    assert {kind: found.state for kind, found in foreseen.items() if found} == {
        "migrate": "SUCCEEDED",
        "rebuild": "SUCCEEDED",
    }


def test_the_plan_starts_by_itself_where_the_operator_wants_it(
    api: Caller, crowded: Server, settings: Settings
) -> None:
    settings.MAKE_ROOM_AUTO_TRIGGER = True
    server = ask_for(api)
    decide()
    run_waiting()
    assert shown(api, server)["status"] == "ACTIVE"


def test_capacity_is_freed_for_a_server_of_a_stack_too_which_is_made_then(crowded: Server, settings: Settings) -> None:
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
def test_a_server_that_is_deleted_leaves_the_rest_of_its_plan_skipped(
    api: Caller, crowded: Server, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ask_for(api)
    plan = decide()
    if when == "before":
        assert api.delete(f"/servers/{server}").status_code == 204
    else:
        delete_after_a_migration(monkeypatch, lambda: api.delete(f"/servers/{server}"))
    plan = start(plan)
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


def test_a_server_for_which_no_capacity_can_be_freed_is_in_error_with_the_reason(api: Caller) -> None:
    make_node(vcpus=4)
    server = ask_for(api)
    plan = start(plan_to_give_up())
    found = shown(api, server)
    assert (plan.state, found["status"]) == ("SUCCEEDED", "ERROR")
    size = "10 VCPUs, 2048 MB of memory and 20 GB of disk"
    assert found["fault"]["message"] == f"No capacity can be provided for {size}."


def test_capacity_that_is_gone_when_the_plan_runs_is_freed_by_the_next_plan(api: Caller, crowded: Server) -> None:
    server = ask_for(api)
    plan = decide()
    taken = make_server("quicker", crowded.node, vcpus=8)
    assert start(plan).state == "FAILED"
    assert shown(api, server)["status"] == "PENDING"
    Server.objects.filter(pk=taken.pk).soft_delete()
    start(decide())
    assert shown(api, server)["status"] == "ACTIVE"
    assert Action.objects.filter(input_parameters__resource_id=str(UUID(server)), action_type="rebuild").count() == 2
