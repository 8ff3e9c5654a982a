"""Operations in an OpenStack cloud whose process was killed or exceeded its timeout."""

from typing import Any

import pytest
from pytest_django import Settings

from cluster.drivers.base import OperationFailed, OperationOutstanding, cloud
from cluster.drivers.openstack.servers import OpenStackServers
from cluster.drivers.ownership import acting_for
from cluster.models import Server
from cluster.operations.synchronization import synchronize
from tests.cluster.emulator.server import Emulator

pytestmark = pytest.mark.django_db


class Killed(BaseException):
    """The process is killed: no handler runs."""


def interrupt(emulator: Emulator, server: str, kind: str, owner: str, *arguments: str) -> None:
    """Begin an operation as a process that is killed during it."""

    def die() -> None:
        if emulator.nova.servers[server]["OS-EXT-STS:task_state"]:
            raise Killed

    with acting_for(owner), pytest.raises(Killed):
        getattr(cloud(), kind)(server, *arguments, checkpoint=die)


def reconcile(server: str, owner: str) -> tuple[str, str | None]:
    with acting_for(owner):
        found = cloud().reconcile(server)
    return found.status, found.host


def test_interrupted_live_migration_is_awaited(emulator: Emulator, server: str) -> None:
    interrupt(emulator, server, "live_migrate", "one")
    assert reconcile(server, "one") == ("ACTIVE", "compute2")


def test_interrupted_cold_migration_is_awaited_and_confirmed(emulator: Emulator, server: str) -> None:
    interrupt(emulator, server, "cold_migrate", "one")
    assert reconcile(server, "one") == ("ACTIVE", "compute2")


def test_interrupted_resize_is_awaited_and_confirmed(emulator: Emulator, server: str) -> None:
    interrupt(emulator, server, "resize", "one", "m1.large")
    assert reconcile(server, "one") == ("ACTIVE", "compute2")
    assert Server.objects.get(uuid=server).flavor == "m1.large"


def test_interrupted_operation_of_another_owner_is_not_awaited(emulator: Emulator, server: str) -> None:
    interrupt(emulator, server, "live_migrate", "one")
    assert reconcile(server, "another") == ("MIGRATING", "compute1")


def test_resize_started_outside_the_site_is_not_confirmed(emulator: Emulator, server: str) -> None:
    emulator.nova.servers[server] |= {"status": "VERIFY_RESIZE", "OS-EXT-STS:vm_state": "resized"}
    assert reconcile(server, "one") == ("VERIFY_RESIZE", "compute1")


def test_reconciliation_clears_the_owner(emulator: Emulator, server: str) -> None:
    interrupt(emulator, server, "live_migrate", "one")
    reconcile(server, "one")
    assert Server.objects.get(uuid=server).operation_owner == ""


def test_interrupted_reconciliation_is_completed_by_the_next(emulator: Emulator, server: str) -> None:
    def die() -> None:
        raise Killed

    interrupt(emulator, server, "cold_migrate", "one")
    with acting_for("one"), pytest.raises(Killed):
        cloud().reconcile(server, die)
    assert reconcile(server, "one") == ("ACTIVE", "compute2")


def test_operation_that_exceeded_its_timeout_is_completed_by_reconciliation(
    emulator: Emulator, server: str, settings: Settings
) -> None:
    settings.OPENSTACK_OPERATION_TIMEOUT = 0
    emulator.readings = 3
    with acting_for("one"), pytest.raises(OperationFailed):
        cloud().live_migrate(server)
    settings.OPENSTACK_OPERATION_TIMEOUT = 60
    assert reconcile(server, "one") == ("ACTIVE", "compute2")


def test_operation_with_an_unknown_outcome_is_completed_by_reconciliation(
    emulator: Emulator, server: str, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.OPENSTACK_OPERATION_TIMEOUT = 0.05
    begin = OpenStackServers.request_operation

    def begin_without_response(*arguments: Any) -> None:
        emulator.fail("POST .*/action", 504, after=True)
        emulator.fail(f"GET .*servers/{server}", 503, times=10_000)
        begin(*arguments)

    monkeypatch.setattr(OpenStackServers, "request_operation", begin_without_response)
    with acting_for("one"), pytest.raises(OperationOutstanding):
        cloud().live_migrate(server)
    emulator.faults.clear()
    settings.OPENSTACK_OPERATION_TIMEOUT = 60
    assert reconcile(server, "one") == ("ACTIVE", "compute2")


def test_synchronization_keeps_the_owner_of_an_operation(emulator: Emulator, server: str) -> None:
    interrupt(emulator, server, "live_migrate", "one")
    synchronize()
    row = Server.objects.get(uuid=server)
    assert (row.operation_owner, row.task_state) == ("one/0", "migrating")


def test_live_migration_is_aborted(emulator: Emulator, server: str) -> None:
    emulator.readings = float("inf")
    interrupt(emulator, server, "live_migrate", "one")
    with acting_for("one"):
        found = cloud().abort_migration(server)
    assert (found.status, found.host) == ("ACTIVE", "compute1")


def test_abort_is_requested_again_while_the_migration_is_preparing(emulator: Emulator, server: str) -> None:
    emulator.readings = float("inf")
    interrupt(emulator, server, "live_migrate", "one")
    emulator.fail("DELETE", 400, times=2, message="Migration 7 state of the instance is preparing.")
    with acting_for("one"):
        assert cloud().abort_migration(server).status == "ACTIVE"


def test_abort_of_a_completed_migration_leaves_the_server_on_its_new_host(emulator: Emulator, server: str) -> None:
    emulator.readings = 1
    interrupt(emulator, server, "live_migrate", "one")
    emulator.fail("DELETE", 400, times=99, message="Migration 7 state of the instance is completed.")
    with acting_for("one"):
        assert cloud().abort_migration(server).host == "compute2"


def test_migration_of_another_owner_is_not_aborted(emulator: Emulator, server: str) -> None:
    interrupt(emulator, server, "live_migrate", "one")
    with acting_for("another"):
        assert cloud().abort_migration(server).status == "MIGRATING"
