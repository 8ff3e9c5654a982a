"""A plan of host maintenance on an OpenStack cloud, from the synchronization to the migrations and their failures."""

import json
from typing import Any

import pytest
from django.core.management import call_command
from pytest_django import Settings

from actions.models import Action
from audits.engine.engine import DecisionEngine
from audits.plugins import synchronize as synchronize_plugins
from cluster.models import ComputeNode, Server
from plans.models import ActionPlan
from tests.api import Caller
from tests.cluster.emulator.nova import make_uuid
from tests.cluster.emulator.server import Emulator
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db
WEB, DB, BATCH = (make_uuid(name) for name in ("web", "db", "batch"))


@pytest.fixture
def plan(emulator: Emulator, api: Caller) -> ActionPlan:
    """A recommended plan to empty compute1, with a running and a stopped server; a third server is on compute2."""
    emulator.nova.add_server("web", "compute1")
    emulator.nova.add_server("db", "compute1", "SHUTOFF")
    emulator.nova.add_server("batch", "compute2")
    call_command("sync_cluster")
    synchronize_plugins()
    parameters = {"maintenance_node": "compute1"}
    body = {"audit_type": "ONESHOT", "goal": "cluster_maintaining", "strategy": "host_maintenance"}
    audit = json.loads(api.post("/audits", {**body, "parameters": parameters}).content)
    DecisionEngine().run(once=True)
    found: ActionPlan = ActionPlan.objects.get(audit__uuid=audit["uuid"])
    return found


def hosts(emulator: Emulator) -> dict[str, str]:
    return {server["name"]: server["OS-EXT-SRV-ATTR:host"] for server in emulator.nova.servers.values()}


def action(plan: ActionPlan, **parameters: str) -> Action:
    wanted = {f"input_parameters__{name}": value for name, value in parameters.items()}
    found: Action = Action.objects.get(action_plan=plan, **wanted)
    return found


def outcomes(plan: ActionPlan) -> dict[str, tuple[str, str]]:
    """Return the state and the status message of each action, by the name of its resource."""
    rows = Action.objects.filter(action_plan=plan).values_list("input_parameters", "state", "status_message")
    return {parameters["resource_name"]: (state, message or "") for parameters, state, message in rows}


def start(api: Caller, plan: ActionPlan) -> ActionPlan:
    assert api.post(f"/action_plans/{plan.uuid}/start").status_code == 200
    run_waiting()
    ended: ActionPlan = ActionPlan.objects.get(pk=plan.pk)
    return ended


def test_plan_disables_the_node_and_migrates_its_servers(plan: ActionPlan) -> None:
    rows = Action.objects.filter(action_plan=plan).values_list("action_type", "input_parameters__resource_name")
    assert set(rows) == {("change_nova_service_state", "compute1"), ("migrate", "web"), ("migrate", "db")}


def test_skipped_server_stays_on_the_emptied_node(emulator: Emulator, api: Caller, plan: ActionPlan) -> None:
    skip: list[dict[str, Any]] = [{"op": "replace", "path": "/state", "value": "SKIPPED"}]
    assert api.patch(f"/actions/{action(plan, resource_id=DB).uuid}", skip).status_code == 200
    assert start(api, plan).state == "SUCCEEDED"
    assert hosts(emulator) == {"web": "compute2", "db": "compute1", "batch": "compute2"}
    service = emulator.nova.services[make_uuid("service of compute1")]
    assert (service["status"], service["disabled_reason"]) == ("disabled", "watcher_maintaining")


def test_tables_are_updated_by_the_actions_of_the_plan(api: Caller, plan: ActionPlan) -> None:
    start(api, plan)
    places = dict(Server.objects.values_list("name", "node__hostname"))
    assert places == {"web": "compute2", "db": "compute2", "batch": "compute2"}
    assert ComputeNode.objects.get(hostname="compute1").status == "disabled"


def test_actions_without_effect_are_skipped_automatically(emulator: Emulator, api: Caller, plan: ActionPlan) -> None:
    del emulator.nova.servers[WEB]
    emulator.nova.servers[DB]["OS-EXT-SRV-ATTR:host"] = "compute2"
    emulator.nova.services[make_uuid("service of compute1")]["status"] = "disabled"
    assert start(api, plan).state == "SUCCEEDED"
    automatically = "Action was skipped automatically: "
    assert outcomes(plan) == {
        "compute1": ("SKIPPED", f"{automatically}nova-compute service compute1 is already in state disabled"),
        "web": ("SKIPPED", f"{automatically}Instance {WEB} not found"),
        "db": (
            "SKIPPED",
            f"{automatically}Instance {DB} is not running on source node compute1 (currently on compute2)",
        ),
    }


def test_failed_migration_has_a_reason_and_other_migrations_continue(
    emulator: Emulator, api: Caller, plan: ActionPlan
) -> None:
    emulator.fail(f"POST .*{WEB}/action", 400, message="Instance is broken.")
    assert start(api, plan).state == "FAILED"
    state, message = outcomes(plan)["web"]
    assert (state, message.split(": ", 1)[1]) == ("FAILED", "The cloud refused it: Instance is broken.")
    assert hosts(emulator)["db"] == "compute2"


def test_migration_refused_with_a_conflict_is_retried(emulator: Emulator, api: Caller, plan: ActionPlan) -> None:
    emulator.fail(f"POST .*{WEB}/action", 409, message="Instance is locked.")
    assert start(api, plan).state == "SUCCEEDED"
    assert outcomes(plan)["web"][0] == "SUCCEEDED"
    assert plan.actions.filter(retries=1).count() == 1


def test_migration_refused_at_each_retry_fails_with_the_reason(
    emulator: Emulator, api: Caller, plan: ActionPlan
) -> None:
    emulator.fail(f"POST .*{WEB}/action", 409, times=float("inf"), message="Instance is locked.")
    assert start(api, plan).state == "FAILED"
    expected = "Exceeded maximum number of retries (3): The cloud refused it: Instance is locked."
    assert outcomes(plan)["web"] == ("FAILED", f"Action failed in execute: {expected}")


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_refused_requests_fail_every_action_with_the_reason(
    emulator: Emulator, api: Caller, plan: ActionPlan, status: int
) -> None:
    emulator.fail("/compute/v2.1/", status, times=float("inf"), message="Go away.")
    assert start(api, plan).state == "FAILED"
    assert {state for state, _ in outcomes(plan).values()} == {"FAILED"}
    assert all(message.endswith(": Go away.") for _, message in outcomes(plan).values())


def test_unreachable_cloud_fails_every_action_with_the_reason(
    emulator: Emulator, api: Caller, plan: ActionPlan, settings: Settings
) -> None:
    settings.OPENSTACK_ATTEMPTS = 1
    emulator.stop()
    ended = start(api, plan)
    emulator.start()
    assert ended.state == "FAILED"
    assert {state for state, _ in outcomes(plan).values()} == {"FAILED"}
    assert all("The cloud does not answer: " in message for _, message in outcomes(plan).values())


def test_hanging_migration_fails_after_its_timeout(
    emulator: Emulator, api: Caller, plan: ActionPlan, settings: Settings
) -> None:
    settings.OPENSTACK_OPERATION_TIMEOUT = 0.05
    emulator.readings = float("inf")
    assert start(api, plan).state == "FAILED"
    state, message = outcomes(plan)["web"]
    assert state == "FAILED"
    assert message.endswith(f"Migrating instance {WEB} was not over after 0.05 seconds, and is no longer waited for")
