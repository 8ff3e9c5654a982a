"""Servers that Nova left in ERROR because they found no host: they are PENDING here, and created again."""

import pytest
from pytest_django import Settings

from cluster.drivers.base import NewServer, NoValidHost, OperationRefused, cloud
from cluster.models import Server, Trust
from cluster.operations.synchronization import synchronize
from cluster.simulated.cloud import SimulatedCloud
from tests.cluster.emulator.server import PROJECT, Emulator

pytestmark = pytest.mark.django_db
LOST = {
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
def used(settings: Settings) -> None:
    settings.USE_PENDING_STATE = True


@pytest.fixture
def lost(emulator: Emulator, server: str) -> str:
    """The UUID of a server that never ran, as the last reading of everything found it."""
    emulator.nova.servers[server] |= LOST
    synchronize()
    return server


def state(server: str) -> str:
    return str(Server.objects.get(uuid=server).state)


def test_a_server_that_found_no_host_is_pending(lost: str) -> None:
    row = Server.objects.get(uuid=lost)
    assert (row.state, row.node, row.fault["code"]) == ("pending", None, 500)
    found = cloud().find_server(lost)
    assert (found.status, found.has_run) == ("PENDING", False)


def test_the_traceback_that_nova_shows_administrators_is_not_kept(emulator: Emulator, lost: str) -> None:
    fault = {"code": 500, "message": "The hypervisor broke.", "created": "2026-03-01T10:00:30Z"}
    emulator.nova.servers[lost]["fault"] = {**fault, "details": "Traceback: /opt/nova/manager.py, line 7"}
    synchronize()
    assert Server.objects.get(uuid=lost).fault == {**fault, "details": None}
    cloud().find_server(lost)
    assert Server.objects.get(uuid=lost).fault == {**fault, "details": None}


def test_without_the_setting_it_stays_in_error(emulator: Emulator, lost: str, settings: Settings) -> None:
    settings.USE_PENDING_STATE = False
    assert (cloud().find_server(lost).status, state(lost)) == ("ERROR", "error")


@pytest.mark.parametrize(
    "changes",
    [{"fault": {"code": 500, "message": "The hypervisor broke."}}, {"OS-SRV-USG:launched_at": "2026-03-01T10:00:30"}],
)
def test_a_server_that_is_in_error_for_another_reason_stays_so(
    emulator: Emulator, lost: str, changes: dict[str, object]
) -> None:
    emulator.nova.servers[lost] |= changes
    assert (cloud().find_server(lost).status, state(lost)) == ("ERROR", "error")


def test_a_server_of_another_project_that_found_no_host_is_in_error(emulator: Emulator, lost: str) -> None:
    emulator.nova.servers[lost]["tenant_id"] = "another project"
    synchronize()
    assert (state(lost), cloud().find_server(lost).status) == ("error", "ERROR")


def test_no_server_is_created_in_the_place_of_one_of_another_project(emulator: Emulator, lost: str) -> None:
    emulator.nova.servers[lost]["tenant_id"] = "another project"
    with pytest.raises(OperationRefused, match="user a user has not let the site create servers in project another"):
        cloud().build_server(lost)
    assert list(emulator.nova.servers) == [lost]


def test_a_preflight_refuses_to_build_a_server_of_another_project(emulator: Emulator, lost: str) -> None:
    emulator.nova.servers[lost]["tenant_id"] = "another project"
    synchronize()
    with pytest.raises(OperationRefused, match="in project another project only as a user of it"):
        SimulatedCloud.load().build_server(lost)


def test_no_server_is_created_for_another_project(emulator: Emulator, lost: str) -> None:
    with pytest.raises(OperationRefused, match="in project another project only as a user of it"):
        cloud().create_server(NewServer("db", "m1.small", "one", project="another project"))
    assert list(emulator.nova.servers) == [lost]


def delegate(emulator: Emulator, user: str = "a user") -> None:
    """Create a trust by which a user lets the site create servers in the project demo."""
    emulator.trusts["t1"] = {"project_id": "demo", "trustor_user_id": user}
    Trust.objects.create(keystone_id="t1", project_id="demo", user_id=user)


def test_a_waiting_server_of_a_user_who_delegated_this_is_created_again_as_theirs(
    emulator: Emulator, lost: str
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
    }
    emulator.nova.servers[lost] |= shown
    synchronize()
    assert state(lost) == "pending"
    cloud().build_server(lost, host="compute2")
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
    }
    assert {name: requested["server"][name] for name in expected} == expected
    assert (requested["OS-SCH-HNT:scheduler_hints"], "host" in requested["server"]) == ({"group": "g1"}, False)


def test_the_trust_of_another_user_of_the_project_is_none_for_a_server(emulator: Emulator, lost: str) -> None:
    delegate(emulator, "somebody else")
    emulator.nova.servers[lost]["tenant_id"] = "demo"
    synchronize()
    assert state(lost) == "error"


def test_a_server_with_a_volume_does_not_wait_as_nova_does_not_tell_all_of_it(emulator: Emulator, lost: str) -> None:
    emulator.nova.servers[lost]["os-extended-volumes:volumes_attached"] = [{"id": "v1"}]
    synchronize()
    assert state(lost) == "error"


def test_a_server_with_the_key_pair_of_another_user_is_not_created_again(emulator: Emulator, lost: str) -> None:
    emulator.nova.servers[lost]["key_name"] = "hers"
    synchronize()
    assert state(lost) == "error"
    with pytest.raises(OperationRefused, match=r"The key pair hers of instance .* belongs to another user"):
        cloud().build_server(lost)
    assert list(emulator.nova.servers) == [lost]


def test_another_server_is_created_in_its_place(emulator: Emulator, lost: str) -> None:
    emulator.nova.servers[lost]["metadata"] = {"role": "web"}
    cloud().build_server(lost)
    [made] = emulator.nova.servers.values()
    assert (made["status"], made["name"], made["metadata"]["role"]) == ("ACTIVE", "web", "web")
    assert Server.objects.present().get().uuid != lost


def test_who_is_killed_on_the_way_leaves_one_server_in_its_place(emulator: Emulator, lost: str) -> None:
    def die() -> None:
        raise Killed

    with pytest.raises(Killed):
        cloud().build_server(lost, die)
    cloud().build_server(lost)
    assert [one["status"] for one in emulator.nova.servers.values()] == ["ACTIVE"]


def test_where_there_is_still_no_capacity_it_waits_on(emulator: Emulator, lost: str) -> None:
    for service in emulator.nova.services.values():
        service["status"] = "disabled"
    with pytest.raises(NoValidHost):
        cloud().build_server(lost)
    assert list(emulator.nova.servers) == [lost]
    assert cloud().find_server(lost).status == "PENDING"


def test_a_server_that_has_run_is_not_built(server: str) -> None:
    with pytest.raises(OperationRefused, match="has run before"):
        cloud().build_server(server)


def test_a_server_that_is_given_up_waits_no_more(lost: str) -> None:
    cloud().reset_state(lost, "error", expected="PENDING")
    assert (cloud().find_server(lost).status, state(lost)) == ("ERROR", "error")
    synchronize()
    assert state(lost) == "error"


def test_a_server_that_no_longer_waits_keeps_its_state(server: str) -> None:
    with pytest.raises(OperationRefused, match="is ACTIVE, and no longer PENDING"):
        cloud().reset_state(server, "error", expected="PENDING")
    assert cloud().find_server(server).status == "ACTIVE"


def test_the_state_of_a_server_is_reset(emulator: Emulator, server: str) -> None:
    cloud().reset_state(server, "error")
    assert (cloud().find_server(server).status, state(server)) == ("ERROR", "error")


def test_a_new_server_that_finds_no_host_is_reported_and_does_not_stay(emulator: Emulator, lost: str) -> None:
    for service in emulator.nova.services.values():
        service["status"] = "disabled"
    with pytest.raises(NoValidHost):
        cloud().create_server(NewServer("db", "m1.small", "one"))
    assert list(emulator.nova.servers) == [lost]
