"""Servers for which Nova found no valid host: PENDING on the site, and created again."""

import pytest
from pytest_django import Settings

from cluster.drivers.base import NewServer, NoValidHost, OperationRefused, cloud
from cluster.models import Server, Trust
from cluster.operations.synchronization import synchronize
from cluster.simulated.cloud import SimulatedCloud
from tests.cluster.emulator.nova import make_uuid
from tests.cluster.emulator.server import PROJECT, Emulator

pytestmark = pytest.mark.django_db
WITHOUT_HOST = {
    "tenant_id": PROJECT,
    "status": "ERROR",
    "OS-EXT-STS:vm_state": "error",
    "OS-SRV-USG:launched_at": None,
    "OS-EXT-SRV-ATTR:host": None,
    "fault": {"code": 500, "message": "No valid host was found. There are not enough hosts available."},
}


class Killed(BaseException):
    pass


@pytest.fixture(autouse=True)
def pending_state_enabled(settings: Settings) -> None:
    settings.USE_PENDING_STATE = True


@pytest.fixture
def unscheduled(emulator: Emulator, server: str) -> str:
    """The UUID of a synchronized server that never ran, as Nova found no valid host."""
    emulator.nova.servers[server] |= WITHOUT_HOST
    synchronize()
    return server


def state(server: str) -> str:
    return str(Server.objects.get(uuid=server).state)


def test_server_without_a_valid_host_is_pending(unscheduled: str) -> None:
    row = Server.objects.get(uuid=unscheduled)
    assert (row.state, row.node, row.fault["code"]) == ("pending", None, 500)
    found = cloud().find_server(unscheduled)
    assert (found.status, found.has_run) == ("PENDING", False)


def test_traceback_in_the_fault_is_not_stored(emulator: Emulator, unscheduled: str) -> None:
    fault = {"code": 500, "message": "The hypervisor broke.", "created": "2026-03-01T10:00:30Z"}
    emulator.nova.servers[unscheduled]["fault"] = {**fault, "details": "Traceback: /opt/nova/manager.py, line 7"}
    synchronize()
    assert Server.objects.get(uuid=unscheduled).fault == {**fault, "details": None}
    cloud().find_server(unscheduled)
    assert Server.objects.get(uuid=unscheduled).fault == {**fault, "details": None}


def test_server_without_a_valid_host_stays_in_error_if_the_pending_state_is_disabled(
    emulator: Emulator, unscheduled: str, settings: Settings
) -> None:
    settings.USE_PENDING_STATE = False
    assert (cloud().find_server(unscheduled).status, state(unscheduled)) == ("ERROR", "error")


@pytest.mark.parametrize(
    "changes",
    [{"fault": {"code": 500, "message": "The hypervisor broke."}}, {"OS-SRV-USG:launched_at": "2026-03-01T10:00:30"}],
)
def test_server_in_error_for_another_reason_stays_in_error(
    emulator: Emulator, unscheduled: str, changes: dict[str, object]
) -> None:
    emulator.nova.servers[unscheduled] |= changes
    assert (cloud().find_server(unscheduled).status, state(unscheduled)) == ("ERROR", "error")


def test_server_of_another_project_without_a_valid_host_stays_in_error(emulator: Emulator, unscheduled: str) -> None:
    emulator.nova.servers[unscheduled]["tenant_id"] = "another project"
    synchronize()
    assert (state(unscheduled), cloud().find_server(unscheduled).status) == ("error", "ERROR")


def test_build_of_a_server_of_another_project_is_refused(emulator: Emulator, unscheduled: str) -> None:
    emulator.nova.servers[unscheduled]["tenant_id"] = "another project"
    with pytest.raises(OperationRefused, match="user a user has not let the site create servers in project another"):
        cloud().build_server(unscheduled)
    assert list(emulator.nova.servers) == [unscheduled]


def test_preflight_refuses_the_build_of_a_server_of_another_project(emulator: Emulator, unscheduled: str) -> None:
    emulator.nova.servers[unscheduled]["tenant_id"] = "another project"
    synchronize()
    with pytest.raises(OperationRefused, match="in project another project only as a user of it"):
        SimulatedCloud.load().build_server(unscheduled)


def test_creation_of_a_server_in_another_project_is_refused(emulator: Emulator, unscheduled: str) -> None:
    with pytest.raises(OperationRefused, match="in project another project only as a user of it"):
        cloud().create_server(NewServer("db", "m1.small", "one", project="another project"))
    assert list(emulator.nova.servers) == [unscheduled]


def delegate(emulator: Emulator, user: str = "a user") -> None:
    """Create a trust with which a user permits the site to create servers in the project demo."""
    emulator.trusts["t1"] = {"project_id": "demo", "trustor_user_id": user}
    Trust.objects.create(keystone_id="t1", project_id="demo", user_id=user)


def test_pending_server_of_a_user_with_a_trust_is_created_again_as_the_user(
    emulator: Emulator, unscheduled: str
) -> None:
    delegate(emulator)
    shown = {
        "tenant_id": "demo",
        "key_name": "mine",
        "OS-EXT-SRV-ATTR:user_data": "//4=",
        "config_drive": "True",
        "tags": ["shop"],
        "description": "the shop",
        "server_groups": ["g1"],
        "security_groups": [{"name": "web"}],
        "OS-EXT-AZ:availability_zone": "east",
    }
    emulator.nova.servers[unscheduled] |= shown
    synchronize()
    assert state(unscheduled) == "pending"
    cloud().build_server(unscheduled, host="compute2")
    [made] = emulator.nova.servers.values()
    assert (made["tenant_id"], made["user_id"]) == ("demo", "a user")
    requested = emulator.nova.requested[0]
    expected = {
        "key_name": "mine",
        "user_data": "//4=",
        "config_drive": True,
        "tags": ["shop"],
        "description": "the shop",
        "security_groups": [{"name": "web"}],
        "availability_zone": "east",
        "flavorRef": "f1",
        "imageRef": make_uuid("image"),
        "networks": "auto",
    }
    assert {name: requested["server"][name] for name in expected} == expected
    assert (requested["OS-SCH-HNT:scheduler_hints"], "host" in requested["server"]) == ({"group": "g1"}, False)


def test_trust_of_another_user_of_the_project_is_not_used(emulator: Emulator, unscheduled: str) -> None:
    delegate(emulator, "somebody else")
    emulator.nova.servers[unscheduled]["tenant_id"] = "demo"
    synchronize()
    assert state(unscheduled) == "error"


def test_server_with_a_volume_is_not_pending(emulator: Emulator, unscheduled: str) -> None:
    emulator.nova.servers[unscheduled]["os-extended-volumes:volumes_attached"] = [{"id": "v1"}]
    synchronize()
    assert state(unscheduled) == "error"


@pytest.mark.parametrize("changes", [{"os-extended-volumes:volumes_attached": [{"id": "v1"}]}, {"image": ""}])
def test_server_with_a_volume_or_without_an_image_is_not_created_again(
    emulator: Emulator, unscheduled: str, changes: dict[str, object]
) -> None:
    emulator.nova.servers[unscheduled] |= changes
    with pytest.raises(OperationRefused, match="has volumes: Nova does not tell how to create it again"):
        cloud().build_server(unscheduled)
    assert list(emulator.nova.servers) == [unscheduled]


def test_server_with_the_key_pair_of_another_user_is_not_created_again(emulator: Emulator, unscheduled: str) -> None:
    emulator.nova.servers[unscheduled]["key_name"] = "hers"
    synchronize()
    assert state(unscheduled) == "error"
    with pytest.raises(OperationRefused, match=r"The key pair hers of instance .* belongs to another user"):
        cloud().build_server(unscheduled)
    assert list(emulator.nova.servers) == [unscheduled]


def test_build_replaces_the_pending_server(emulator: Emulator, unscheduled: str) -> None:
    emulator.nova.servers[unscheduled]["metadata"] = {"role": "web"}
    cloud().build_server(unscheduled)
    [made] = emulator.nova.servers.values()
    assert (made["status"], made["name"], made["metadata"]["role"]) == ("ACTIVE", "web", "web")
    assert Server.objects.present().get().uuid != unscheduled


def test_build_interrupted_by_a_kill_leaves_one_server(emulator: Emulator, unscheduled: str) -> None:
    def die() -> None:
        raise Killed

    with pytest.raises(Killed):
        cloud().build_server(unscheduled, die)
    cloud().build_server(unscheduled)
    assert [one["status"] for one in emulator.nova.servers.values()] == ["ACTIVE"]


def test_server_stays_pending_while_no_valid_host_is_found(emulator: Emulator, unscheduled: str) -> None:
    for service in emulator.nova.services.values():
        service["status"] = "disabled"
    with pytest.raises(NoValidHost):
        cloud().build_server(unscheduled)
    assert list(emulator.nova.servers) == [unscheduled]
    assert cloud().find_server(unscheduled).status == "PENDING"


def test_server_that_ran_before_is_not_built(server: str) -> None:
    with pytest.raises(OperationRefused, match="has run before"):
        cloud().build_server(server)


def test_pending_server_reset_to_error_stays_in_error(unscheduled: str) -> None:
    cloud().reset_state(unscheduled, "error", expected="PENDING")
    assert (cloud().find_server(unscheduled).status, state(unscheduled)) == ("ERROR", "error")
    synchronize()
    assert state(unscheduled) == "error"


def test_reset_is_refused_if_the_server_is_no_longer_pending(server: str) -> None:
    with pytest.raises(OperationRefused, match="is ACTIVE, and no longer PENDING"):
        cloud().reset_state(server, "error", expected="PENDING")
    assert cloud().find_server(server).status == "ACTIVE"


def test_state_of_a_server_is_reset_to_error(emulator: Emulator, server: str) -> None:
    cloud().reset_state(server, "error")
    assert (cloud().find_server(server).status, state(server)) == ("ERROR", "error")


def test_new_server_without_a_valid_host_is_reported_and_deleted(emulator: Emulator, unscheduled: str) -> None:
    for service in emulator.nova.services.values():
        service["status"] = "disabled"
    with pytest.raises(NoValidHost):
        cloud().create_server(NewServer("db", "m1.small", "one"))
    assert list(emulator.nova.servers) == [unscheduled]
