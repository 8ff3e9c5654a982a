"""Notifications during a synchronization: the newer state of each object is kept, in either order of the writes."""

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from cluster.drivers.base import cloud
from cluster.models import Server, Synchronization, Volume
from cluster.operations import synchronization
from cluster.operations.synchronization import synchronize
from cluster.synchronization import mirroring, notified_objects
from tests.cluster.drivers.openstack.notifications.conftest import read_cloud
from tests.cluster.drivers.openstack.notifications.samples import SERVER, VOLUME, ago, handle, instance, volume
from tests.cluster.emulator.nova import make_uuid
from tests.cluster.emulator.server import Emulator
from tests.interleaving import Rival, interrupt_after, interrupt_before

NEW = make_uuid("new")


class Called:
    """A function that is called once in the middle of another, on the same connection."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.begun = False

    def start(self) -> None:
        if not self.begun:
            self.begun = True
            self.function()


def during_a_synchronization(monkeypatch: pytest.MonkeyPatch, function: Callable[[], Any]) -> None:
    """Call a function after the next synchronization has read the cloud and before it writes."""
    interrupt_before(monkeypatch, synchronization, "write_contents", Called(function))


def state() -> str:
    found: Server = Server.objects.get(uuid=SERVER)
    return "deleted" if found.deleted_at else found.state


def stop() -> bool:
    return handle("instance.power_off.end", instance(state="stopped"))


@pytest.mark.django_db
def test_synchronization_that_began_earlier_keeps_a_newer_notification(
    synced: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    during_a_synchronization(monkeypatch, stop)
    synchronize()
    assert state() == "stopped"


@pytest.mark.django_db
def test_synchronization_that_began_earlier_does_not_restore_a_deleted_server(
    synced: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_before(
        monkeypatch,
        synchronization,
        "write_contents",
        Called(lambda: handle("instance.delete.end", instance(), ago(60))),
    )
    synchronize()
    assert state() == "deleted"


@pytest.mark.django_db
def test_synchronization_that_began_earlier_does_not_delete_a_new_server(
    synced: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = instance("InstanceCreatePayload", "1.13", uuid=NEW)
    during_a_synchronization(monkeypatch, lambda: handle("instance.create.end", created))
    synchronize()
    assert Server.objects.present().filter(uuid=NEW).exists()


@pytest.mark.django_db
def test_synchronization_overwrites_a_notification_from_before_its_start(
    synced: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    during_a_synchronization(monkeypatch, lambda: handle("instance.power_off.end", instance(state="stopped"), ago(60)))
    synchronize()
    assert state() == "active"


@pytest.mark.django_db
def test_synchronization_overwrites_a_notification_with_an_earlier_update_time(
    synced: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The notification was sent after the synchronization began, and the server changed again before it was read."""
    synced.nova.servers[SERVER]["updated"] = "2026-03-02T10:00:05Z"
    earlier = instance(state="stopped", updated_at="2026-03-02T10:00:00Z")
    during_a_synchronization(monkeypatch, lambda: handle("instance.power_off.end", earlier))
    synchronize()
    assert state() == "active"


@pytest.mark.django_db
def test_next_synchronization_corrects_the_state_after_a_lost_notification(synced: Emulator) -> None:
    handle("instance.power_off.end", instance(state="stopped"), ago(60))
    synchronize()
    assert state() == "active"


@pytest.mark.django_db
def test_server_of_a_late_creation_notification_is_deleted_by_the_next_synchronization(synced: Emulator) -> None:
    handle("instance.delete.end", instance(uuid=NEW), ago(59))
    handle("instance.create.end", instance("InstanceCreatePayload", "1.13", uuid=NEW), ago(60))
    synchronize()
    assert not Server.objects.present().filter(uuid=NEW).exists()


@pytest.mark.django_db
def test_notification_older_than_the_read_of_an_action_is_ignored(synced: Emulator) -> None:
    synced.nova.servers[SERVER]["updated"] = ago(5).isoformat()
    cloud().find_server(SERVER)
    assert not handle("instance.power_off.end", instance(state="stopped"), ago(10))


@pytest.mark.django_db
def test_server_deleted_by_a_notification_is_restored_by_the_read_of_an_action(synced: Emulator) -> None:
    handle("instance.delete.end", instance())
    cloud().find_server(SERVER)
    assert state() == "active"


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_older_notification_waits_for_a_synchronization_and_is_ignored(
    synced: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    rival = Rival(lambda: handle("instance.power_off.end", instance(state="stopped"), ago(60)))
    interrupt_after(monkeypatch, synchronization, "write_contents", rival)
    synchronize()
    assert (rival.result(), state()) == (False, "active")


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_notification_sent_during_a_synchronization_is_written_after_it(
    synced: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    rival = Rival(stop)
    interrupt_after(monkeypatch, synchronization, "write_contents", rival)
    synchronize()
    assert (rival.result(), state()) == (True, "stopped")


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_synchronization_that_began_later_waits_for_a_notification_and_overwrites_it(
    synced: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    rival = Rival(synchronize)
    interrupt_after(monkeypatch, notified_objects, "write", rival)
    assert stop()
    rival.result()
    assert state() == "active"


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_synchronization_and_notification_insert_a_server_once(
    synced: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced.nova.add_server("new", "compute1")
    created = instance("InstanceCreatePayload", "1.13", uuid=NEW, display_name="new")
    rival = Rival(lambda: handle("instance.create.end", created))
    interrupt_after(monkeypatch, synchronization, "write_contents", rival)
    synchronize()
    rival.result()
    assert Server.objects.filter(uuid=NEW).count() == 1


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_action_and_notification_insert_a_server_once(synced: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    synced.nova.add_server("new", "compute1")
    created = instance("InstanceCreatePayload", "1.13", uuid=NEW, display_name="new")
    rival = Rival(lambda: handle("instance.create.end", created))
    interrupt_after(monkeypatch, mirroring, "write_row", rival)
    cloud().find_server(NEW)
    rival.result()
    assert Server.objects.filter(uuid=NEW).count() == 1


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_newer_of_two_concurrent_notifications_is_kept(synced: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    older = Rival(lambda: handle("instance.power_on.end", instance(state="active"), ago(2)))
    interrupt_after(monkeypatch, notified_objects, "write", older)
    assert handle("instance.power_off.end", instance(state="stopped"), ago(1))
    assert (older.result(), state()) == (False, "stopped")


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_synchronization_and_notification_insert_a_volume_once(
    synced: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced.cinder.add_pool("block@lvm#gold", "lvm")
    read_cloud()
    synced.cinder.add_volume(VOLUME, "data", "block@lvm#gold")
    rival = Rival(lambda: handle("volume.create.end", volume(size=20)))
    interrupt_after(monkeypatch, synchronization, "write_contents", rival)
    synchronize()
    assert (rival.result(), Volume.objects.get().size) == (True, 20)
    assert Synchronization.current().succeeded_at < timezone.now()  # type: ignore[operator]
