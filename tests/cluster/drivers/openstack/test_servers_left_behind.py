"""Operations in an OpenStack cloud whose process died or gave up."""

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


class Lost(BaseException):
    """The process is gone: nothing of ours is done any more."""


def leave(emulator: Emulator, server: str, kind: str, owner: str, *arguments: str) -> None:
    """Begin an operation, and die in the middle of it."""

    def die() -> None:
        if emulator.nova.servers[server]["OS-EXT-STS:task_state"]:
            raise Lost

    with acting_for(owner), pytest.raises(Lost):
        getattr(cloud(), kind)(server, *arguments, checkpoint=die)


def reconcile(server: str, owner: str) -> tuple[str, str | None]:
    with acting_for(owner):
        found = cloud().reconcile(server)
    return found.status, found.host


def test_a_live_migration_left_behind_is_waited_for(emulator: Emulator, server: str) -> None:
    leave(emulator, server, "live_migrate", "one")
    assert reconcile(server, "one") == ("ACTIVE", "compute2")


def test_a_cold_migration_left_behind_is_waited_for_and_confirmed(emulator: Emulator, server: str) -> None:
    leave(emulator, server, "cold_migrate", "one")
    assert reconcile(server, "one") == ("ACTIVE", "compute2")


def test_a_resize_left_behind_is_waited_for_and_confirmed(emulator: Emulator, server: str) -> None:
    leave(emulator, server, "resize", "one", "m1.large")
    assert reconcile(server, "one") == ("ACTIVE", "compute2")
    assert Server.objects.get(uuid=server).flavor == "m1.large"


def test_an_operation_of_another_is_not_waited_for(emulator: Emulator, server: str) -> None:
    leave(emulator, server, "live_migrate", "one")
    assert reconcile(server, "another") == ("MIGRATING", "compute1")


def test_a_resize_that_a_person_began_is_not_confirmed(emulator: Emulator, server: str) -> None:
    emulator.nova.servers[server] |= {"status": "VERIFY_RESIZE", "OS-EXT-STS:vm_state": "resized"}
    assert reconcile(server, "one") == ("VERIFY_RESIZE", "compute1")


def test_what_is_reconciled_belongs_to_nobody_any_more(emulator: Emulator, server: str) -> None:
    leave(emulator, server, "live_migrate", "one")
    reconcile(server, "one")
    assert Server.objects.get(uuid=server).operation_owner == ""


def test_an_interrupted_reconciliation_is_left_to_the_next(emulator: Emulator, server: str) -> None:
    def die() -> None:
        raise Lost

    leave(emulator, server, "cold_migrate", "one")
    with acting_for("one"), pytest.raises(Lost):
        cloud().reconcile(server, die)
    assert reconcile(server, "one") == ("ACTIVE", "compute2")


def test_an_operation_that_is_no_longer_waited_for_can_still_be_waited_for_by_the_process_that_takes_it_over(
    emulator: Emulator, server: str, settings: Settings
) -> None:
    settings.OPENSTACK_OPERATION_TIMEOUT = 0
    emulator.readings = 3
    with acting_for("one"), pytest.raises(OperationFailed):
        cloud().live_migrate(server)
    settings.OPENSTACK_OPERATION_TIMEOUT = 60
    assert reconcile(server, "one") == ("ACTIVE", "compute2")


def test_an_operation_that_may_have_reached_nova_can_be_waited_for_by_the_process_that_takes_it_over(
    emulator: Emulator, server: str, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.OPENSTACK_OPERATION_TIMEOUT = 0.05
    begin = OpenStackServers.request_operation

    def begin_unheard(*arguments: Any) -> None:
        emulator.fail("POST .*/action", 504, after=True)
        emulator.fail(f"GET .*servers/{server}", 503, times=10_000)
        begin(*arguments)

    monkeypatch.setattr(OpenStackServers, "request_operation", begin_unheard)
    with acting_for("one"), pytest.raises(OperationOutstanding):
        cloud().live_migrate(server)
    emulator.faults.clear()
    settings.OPENSTACK_OPERATION_TIMEOUT = 60
    assert reconcile(server, "one") == ("ACTIVE", "compute2")


def test_a_reading_of_everything_leaves_the_mark_of_whose_an_operation_is(emulator: Emulator, server: str) -> None:
    leave(emulator, server, "live_migrate", "one")
    synchronize()
    row = Server.objects.get(uuid=server)
    assert (row.operation_owner, row.task_state) == ("one/0", "migrating")


def test_a_live_migration_is_aborted(emulator: Emulator, server: str) -> None:
    emulator.readings = float("inf")
    leave(emulator, server, "live_migrate", "one")
    with acting_for("one"):
        found = cloud().abort_migration(server)
    assert (found.status, found.host) == ("ACTIVE", "compute1")


def test_the_abort_of_a_live_migration_is_requested_again_when_it_comes_too_early(
    emulator: Emulator, server: str
) -> None:
    emulator.readings = float("inf")
    leave(emulator, server, "live_migrate", "one")
    emulator.fail("DELETE", 400, times=2, message="Migration 7 state of the instance is preparing.")
    with acting_for("one"):
        assert cloud().abort_migration(server).status == "ACTIVE"


def test_a_live_migration_that_is_over_before_it_is_aborted(emulator: Emulator, server: str) -> None:
    emulator.readings = 1
    leave(emulator, server, "live_migrate", "one")
    emulator.fail("DELETE", 400, times=99, message="Migration 7 state of the instance is completed.")
    with acting_for("one"):
        assert cloud().abort_migration(server).host == "compute2"


def test_the_migration_of_another_is_not_aborted(emulator: Emulator, server: str) -> None:
    leave(emulator, server, "live_migrate", "one")
    with acting_for("another"):
        assert cloud().abort_migration(server).status == "MIGRATING"
