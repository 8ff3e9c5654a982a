"""Host maintenance on a real Nova: audit, skipped migration, execution and rollback."""

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from audits.engine.engine import DecisionEngine
from audits.plugins import synchronize as synchronize_plugins
from cluster.models import ComputeNode, Server
from cluster.operations.synchronization import synchronize
from plans.models import ActionPlan
from tests.api import Caller
from tests.openstack.conftest import Nova
from tests.openstack.plans.conftest import migration, plan_steps
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.openstack


def test_skipped_migration_is_omitted_and_others_succeed(nova: Nova, cloud_admin: User) -> None:
    staying, leaving = nova.boot("stays", "cmp1"), nova.boot("leaves", "cmp1")
    synchronize()
    synchronize_plugins()
    caller = Caller(cloud_admin)
    parameters = {"maintenance_node": "cmp1", "backup_node": "cmp2"}
    body = {"goal": "cluster_maintaining", "strategy": "host_maintenance", "audit_type": "ONESHOT"}
    assert caller.post("/audits", {**body, "parameters": parameters}).status_code == 201
    DecisionEngine().run(once=True)
    [plan] = caller.get("/action_plans").json()["action_plans"]

    def actions() -> dict[str, dict[str, str]]:
        found = caller.get(f"/actions/detail?action_plan_uuid={plan['uuid']}").json()["actions"]
        return {one["input_parameters"]["resource_id"]: one for one in found}

    patch = [
        {"op": "replace", "path": "/state", "value": "SKIPPED"},
        {"op": "replace", "path": "/status_message", "value": "month-end closing"},
    ]
    assert caller.patch(f"/actions/{actions()[staying]['uuid']}", patch).status_code == 200
    assert caller.post(f"/action_plans/{plan['uuid']}/start").status_code == 200
    run_waiting()

    assert caller.get(f"/action_plans/{plan['uuid']}").json()["state"] == "SUCCEEDED"
    assert sorted(one["state"] for one in actions().values()) == ["SKIPPED", "SUCCEEDED", "SUCCEEDED"]
    assert "month-end closing" in actions()[staying]["status_message"]
    assert [nova.show(server).compute_host for server in (staying, leaving)] == ["cmp1", "cmp2"]
    [service] = nova.compute.services(binary="nova-compute", host="cmp1")
    assert (service.status, service.disabled_reason) == ("disabled", "watcher_maintaining")


def test_rollback_enables_the_node_and_returns_the_server(nova: Nova, settings: Settings) -> None:
    settings.ROLLBACK = True
    server = nova.boot("web", "cmp1")
    synchronize()
    node = ComputeNode.objects.get(hostname="cmp1")
    disable = {"resource_id": str(node.uuid), "resource_name": "cmp1", "state": "disabled"}
    plan = plan_steps(
        ("change_nova_service_state", disable), migration(server), ("nop", {"message": None, "fail_execute": True})
    )
    run_waiting()
    assert nova.states()["cmp1"] == ("enabled", "up")
    assert (nova.show(server).compute_host, Server.objects.get(uuid=server).node.hostname) == ("cmp1", "cmp1")
    assert [found.status for found in nova.migrations(server)] == ["completed", "completed"]
    assert str(ActionPlan.objects.get(pk=plan.pk).status_message).endswith("2 actions reverted.")
