"""Reboots and rebuilds of servers by Nova, and their failures."""

import io
from typing import Any

import pytest
from django.core.management import call_command

from cluster.drivers.base import CloudBusy, CloudError, NoValidHost, OperationRefused, ServerNotFound, cloud
from cluster.drivers.ownership import acting_for
from cluster.models import Server
from tests.cluster.emulator.nova import make_uuid
from tests.cluster.emulator.server import Emulator

pytestmark = pytest.mark.django_db
KINDS = ["reboot_server", "rebuild_server"]
WORDS = {"reboot_server": "Rebooting", "rebuild_server": "Rebuilding"}
BROKEN = {"status": "ERROR", "OS-EXT-STS:vm_state": "error", "fault": {"code": 500, "message": "It broke before."}}


class Killed(BaseException):
    pass


def status(emulator: Emulator, server: str) -> str:
    return str(emulator.nova.servers[server]["status"])


def requested_operations(emulator: Emulator) -> int:
    return emulator.count("POST .*/action")


def refusal(kind: str, *arguments: Any) -> str:
    with pytest.raises(CloudError) as caught:
        getattr(cloud(), kind)(*arguments)
    return str(caught.value)


def interrupt_repair(emulator: Emulator, kind: str, server: str, owner: str = "one") -> None:
    """Begin a repair as a process that is killed during it."""

    def die() -> None:
        if emulator.nova.servers[server]["OS-EXT-STS:task_state"]:
            raise Killed

    with acting_for(owner), pytest.raises(Killed):
        getattr(cloud(), kind)(server, checkpoint=die)


@pytest.mark.parametrize("kind", KINDS)
def test_server_in_error_is_active_after_a_repair(emulator: Emulator, server: str, kind: str) -> None:
    emulator.nova.servers[server] |= BROKEN
    getattr(cloud(), kind)(server)
    row = Server.objects.get(uuid=server)
    assert (status(emulator, server), row.state, row.operation_owner) == ("ACTIVE", "active", "")


@pytest.mark.parametrize(
    ("before", "shown"), [("ACTIVE", "REBOOT"), ("SHUTOFF", "HARD_REBOOT"), ("ERROR", "HARD_REBOOT")]
)
def test_reboot_is_soft_for_active_servers_and_hard_for_others(
    emulator: Emulator, server: str, before: str, shown: str
) -> None:
    emulator.nova.servers[server]["status"] = before
    seen = set()
    cloud().reboot_server(server, lambda: seen.add(status(emulator, server)))
    assert shown in seen
    assert status(emulator, server) == "ACTIVE"


@pytest.mark.parametrize(("image", "used"), [("another", "another"), (None, make_uuid("image"))])
def test_server_is_rebuilt_from_the_requested_image_or_its_own(
    emulator: Emulator, server: str, image: str | None, used: str
) -> None:
    emulator.nova.servers[server]["metadata"] = {"watcher_token": "one"}
    cloud().rebuild_server(server, image)
    found = emulator.nova.servers[server]
    assert (found["image"], found["metadata"]) == ({"id": used}, {"watcher_token": "one"})
    assert emulator.nova.history[server][0]["action"] == "rebuild"


def test_unhealthy_mark_is_kept_until_a_rebuild(emulator: Emulator, server: str) -> None:
    Server.objects.filter(uuid=server).update(unhealthy_reason="slow")
    call_command("sync_cluster", stdout=io.StringIO())
    cloud().reboot_server(server)
    assert Server.objects.get(uuid=server).unhealthy_reason == "slow"
    cloud().rebuild_server(server)
    assert Server.objects.get(uuid=server).unhealthy_reason is None


@pytest.mark.parametrize(("state", "reason"), [("error", "slow"), ("active", None)])
def test_unhealthy_mark_is_cleared_by_a_reset_to_active(
    emulator: Emulator, server: str, state: str, reason: str | None
) -> None:
    Server.objects.filter(uuid=server).update(unhealthy_reason="slow")
    cloud().reset_state(server, state)
    assert Server.objects.get(uuid=server).unhealthy_reason == reason


def test_rebuilt_stopped_server_stays_stopped(emulator: Emulator, server: str) -> None:
    emulator.nova.servers[server] |= {"status": "SHUTOFF", "OS-EXT-STS:vm_state": "stopped"}
    cloud().rebuild_server(server)
    assert status(emulator, server) == "SHUTOFF"


def test_rebuild_of_a_server_that_boots_from_a_volume_requires_an_image(emulator: Emulator, server: str) -> None:
    emulator.nova.servers[server]["image"] = ""
    message = refusal("rebuild_server", server)
    assert message == f"Instance {server} boots from a volume: name the image from which to rebuild it"


def test_unknown_image_is_refused_with_the_message_of_nova(emulator: Emulator, server: str) -> None:
    emulator.nova.unknown_images.add("none")
    assert refusal("rebuild_server", server, "none") == "The cloud refused it: Cannot find image for rebuild"
    assert Server.objects.get(uuid=server).operation_owner == ""


@pytest.mark.parametrize("kind", KINDS)
def test_server_that_was_never_built_is_refused_permanently(emulator: Emulator, server: str, kind: str) -> None:
    emulator.nova.servers[server] |= {**BROKEN, "OS-SRV-USG:launched_at": None, "OS-EXT-SRV-ATTR:host": None}
    with pytest.raises(OperationRefused, match="was never built: it can only be created again") as caught:
        getattr(cloud(), kind)(server)
    assert not isinstance(caught.value, CloudBusy)
    assert requested_operations(emulator) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_server_being_built_is_busy(emulator: Emulator, server: str, kind: str) -> None:
    emulator.nova.servers[server] |= {"status": "BUILD", "OS-EXT-STS:vm_state": "building"}
    with pytest.raises(CloudBusy, match="while it is in vm_state building"):
        getattr(cloud(), kind)(server)


@pytest.mark.parametrize("kind", KINDS)
def test_deleted_server_is_not_found(emulator: Emulator, server: str, kind: str) -> None:
    del emulator.nova.servers[server]
    with pytest.raises(ServerNotFound):
        getattr(cloud(), kind)(server)
    assert Server.objects.get(uuid=server).deleted_at


@pytest.mark.parametrize("kind", KINDS)
def test_operation_of_another_owner_is_not_touched(emulator: Emulator, server: str, kind: str) -> None:
    interrupt_repair(emulator, kind, server)
    with acting_for("another"), pytest.raises(CloudBusy, match="is busy: "):
        getattr(cloud(), kind)(server)
    assert requested_operations(emulator) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("failing", ["stay", "error"])
def test_failed_repair_has_the_reason(emulator: Emulator, server: str, kind: str, failing: str) -> None:
    emulator.nova.failing = failing
    reason = {"stay": "The hypervisor did not do it.", "error": "The hypervisor broke."}[failing]
    assert refusal(kind, server) == f"{WORDS[kind]} instance {server} failed: {reason}"


def test_rebuild_without_a_valid_host_raises_no_valid_host(
    emulator: Emulator, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator.nova.failing = "error"
    refused = "No valid host was found. The image does not suit the host."
    monkeypatch.setattr("tests.cluster.emulator.nova_operations.BROKE", refused)
    with pytest.raises(NoValidHost, match="The image does not suit the host"):
        cloud().rebuild_server(server, "another")


@pytest.mark.parametrize("kind", KINDS)
def test_interrupted_repair_is_resumed_without_another_request(emulator: Emulator, server: str, kind: str) -> None:
    emulator.nova.servers[server] |= BROKEN
    interrupt_repair(emulator, kind, server)
    with acting_for("one"):
        getattr(cloud(), kind)(server)
    assert (status(emulator, server), requested_operations(emulator)) == ("ACTIVE", 1)
    assert Server.objects.get(uuid=server).operation_owner == ""


@pytest.mark.parametrize("kind", KINDS)
def test_interrupted_repair_that_fails_has_the_reason(emulator: Emulator, server: str, kind: str) -> None:
    interrupt_repair(emulator, kind, server)
    emulator.nova.failing = "stay"
    with acting_for("one"):
        assert refusal(kind, server) == f"{WORDS[kind]} instance {server} failed: The hypervisor did not do it."


@pytest.mark.parametrize("kind", KINDS)
def test_interrupted_repair_is_completed_by_reconciliation(emulator: Emulator, server: str, kind: str) -> None:
    emulator.nova.servers[server] |= BROKEN
    interrupt_repair(emulator, kind, server)
    with acting_for("one"):
        assert cloud().reconcile(server).status == "ACTIVE"


@pytest.mark.parametrize("kind", KINDS)
def test_repair_is_awaited_after_a_lost_response(emulator: Emulator, server: str, kind: str) -> None:
    emulator.nova.servers[server] |= BROKEN
    emulator.fail("POST .*/action", 504, after=True)
    getattr(cloud(), kind)(server)
    assert (status(emulator, server), requested_operations(emulator)) == ("ACTIVE", 1)
