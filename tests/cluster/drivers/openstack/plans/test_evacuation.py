"""An audit evacuates a failed compute node of an OpenStack cloud through Nova, if it is known to be off."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from actions.models import Action
from audits.engine.engine import DecisionEngine
from audits.models import Audit
from audits.plugins import synchronize as synchronize_plugins
from cluster.operations.synchronization import synchronize
from plans.models import ActionPlan
from tests.api import Caller
from tests.builders import make_plan
from tests.cluster.drivers.openstack.cached_contents import write_cached_contents
from tests.cluster.emulator.nova import make_uuid
from tests.cluster.emulator.server import Emulator
from tests.plans.inline import run_waiting
from tests.plans.kills import LifeInStatements, run_until_killed
from watcher_site.models import HistoryEntry

pytestmark = pytest.mark.django_db
MACHINE = "31111111-1111-1111-1111-111111111111"
CONFIRMED = {"failed_node": "compute1", "fencing": "confirmed"}


@pytest.fixture
def failed(emulator: Emulator) -> dict[str, Any]:
    """The compute service of a host that is down, with a running and a stopped server."""
    emulator.nova.add_server("web", "compute1")
    emulator.nova.add_server("db", "compute1", "SHUTOFF")
    service: dict[str, Any] = emulator.nova.services[make_uuid("service of compute1")]
    set_state(emulator, service, "down")
    write_cached_contents("two servers on a host that is down")
    synchronize_plugins()
    return service


def set_state(emulator: Emulator, service: dict[str, Any], state: str) -> None:
    service["state"] = emulator.nova.hypervisors[make_uuid("compute1")]["state"] = state


def audit(api: Caller, **parameters: Any) -> Audit:
    body = {"audit_type": "ONESHOT", "goal": "node_recovery", "strategy": "node_recovery", "parameters": parameters}
    made = json.loads(api.post("/audits", body).content)
    DecisionEngine().run(once=True)
    found: Audit = Audit.objects.get(uuid=made["uuid"])
    return found


def start(api: Caller, made: Audit) -> ActionPlan:
    plan = ActionPlan.objects.get(audit=made)
    assert api.post(f"/action_plans/{plan.uuid}/start").status_code == 200
    run_waiting()
    return ActionPlan.objects.get(pk=plan.pk)


def places(emulator: Emulator) -> dict[str, tuple[str, str]]:
    found = emulator.nova.servers.values()
    return {server["name"]: (server["OS-EXT-SRV-ATTR:host"], server["status"]) for server in found}


MOVED = {"web": ("compute2", "ACTIVE"), "db": ("compute2", "SHUTOFF")}


def test_host_confirmed_to_be_off_is_evacuated(
    emulator: Emulator, api: Caller, cloud_admin: User, failed: dict[str, Any]
) -> None:
    made = audit(api, **CONFIRMED)
    assert start(api, made).state == "SUCCEEDED"
    assert places(emulator) == MOVED
    assert (failed["status"], failed["disabled_reason"]) == ("disabled", "watcher_evacuated")
    outputs = Action.objects.filter(action_type="evacuate").values_list("outputs", flat=True)
    assert list(outputs) == [{"destination_node": "compute2"}] * 2
    assert HistoryEntry.objects.get(deed="audit.create", object_uuid=made.uuid).user == cloud_admin.username


def test_host_not_known_to_be_off_is_not_evacuated(emulator: Emulator, api: Caller, failed: dict[str, Any]) -> None:
    made = audit(api)
    assert made.state == "FAILED"
    assert "Compute node compute1 is down, but not known to be off" in (made.status_message or "")


def test_host_with_a_service_forced_down_is_evacuated(emulator: Emulator, api: Caller, failed: dict[str, Any]) -> None:
    failed["forced_down"] = True
    synchronize()
    assert start(api, audit(api)).state == "SUCCEEDED"
    assert places(emulator) == MOVED


def test_host_is_powered_off_by_ironic_and_evacuated(emulator: Emulator, api: Caller, failed: dict[str, Any]) -> None:
    emulator.ironic.add(MACHINE, "rack-1", compute_node_id=make_uuid("compute1"))
    assert start(api, audit(api, fencing="power_off")).state == "SUCCEEDED"
    assert (emulator.ironic.nodes[MACHINE]["power_state"], places(emulator)) == ("power off", MOVED)


def test_host_that_cannot_be_powered_off_is_not_evacuated(
    emulator: Emulator, api: Caller, failed: dict[str, Any]
) -> None:
    assert start(api, audit(api, fencing="power_off")).state == "FAILED"
    reasons = dict(Action.objects.values_list("action_type", "status_message"))
    assert "in Ironic not found" in reasons["change_node_power_state"]
    assert "not known to be off" in reasons["evacuate"]
    assert emulator.count("POST .*/action") == 0


def test_host_that_is_up_at_the_start_of_the_plan_is_not_evacuated(
    emulator: Emulator, api: Caller, failed: dict[str, Any]
) -> None:
    made = audit(api, **CONFIRMED)
    set_state(emulator, failed, "up")
    start(api, made)
    states = Action.objects.filter(action_type="evacuate").values_list("state", flat=True)
    assert (set(states), emulator.count("POST .*/action")) == ({"SKIPPED"}, 0)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_server_is_evacuated_once_if_the_applier_is_killed_at_any_statement(
    emulator: Emulator, failed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed["status"] = "disabled"
    statements, killed = 0, True
    while killed:
        server = emulator.nova.add_server(f"web {statements}", "compute1")
        plan = make_plan(state="PENDING")
        parameters = {"resource_id": server, "source_node": "compute1", "fencing": "confirmed"}
        Action.objects.create(action_plan=plan, action_type="evacuate", input_parameters=parameters)
        killed = run_until_killed(monkeypatch, LifeInStatements(statements))
        run_waiting()
        assert Action.objects.get(action_plan=plan).state == "SUCCEEDED"
        assert emulator.nova.servers[server]["OS-EXT-SRV-ATTR:host"] == "compute2"
        assert emulator.count(f"POST .*/{server}/action") == 1
        statements += 5
    assert statements > 20
