"""Notifications and readings at the same time: the newer one of each object stays, whichever is written first."""

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
from tests.cluster.drivers.openstack.notifications.samples import SERVER, VOLUME, ago, hear, instance, volume
from tests.cluster.emulator.nova import make_uuid
from tests.cluster.emulator.server import Emulator
from tests.interleaving import Rival, interrupt_after, interrupt_before

NEW = make_uuid("new")


class Called:
    """A verb that runs in the middle of another one, once, on the same connection."""

    def __init__(self, verb: Callable[[], Any]) -> None:
        self.verb = verb
        self.begun = False

    def let_in(self) -> None:
        if not self.begun:
            self.begun = True
            self.verb()


def during_a_reading(monkeypatch: pytest.MonkeyPatch, verb: Callable[[], Any]) -> None:
    """Call a verb after the next reading has read the cloud, and before it writes."""
    interrupt_before(monkeypatch, synchronization, "write_contents", Called(verb))


def state() -> str:
    found: Server = Server.objects.get(uuid=SERVER)
    return "deleted" if found.deleted_at else found.state


def stop() -> bool:
    return hear("instance.power_off.end", instance(state="stopped"))


@pytest.mark.django_db
def test_a_reading_that_began_earlier_keeps_a_newer_notification(
    read: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    during_a_reading(monkeypatch, stop)
    synchronize()
    assert state() == "stopped"


@pytest.mark.django_db
def test_a_reading_that_began_earlier_does_not_bring_a_deleted_server_back(
    read: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_before(
        monkeypatch,
        synchronization,
        "write_contents",
        Called(lambda: hear("instance.delete.end", instance(), ago(60))),
    )
    synchronize()
    assert state() == "deleted"


@pytest.mark.django_db
def test_a_reading_that_began_earlier_does_not_mark_a_new_server_deleted(
    read: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = instance("InstanceCreatePayload", "1.13", uuid=NEW)
    during_a_reading(monkeypatch, lambda: hear("instance.create.end", created))
    synchronize()
    assert Server.objects.present().filter(uuid=NEW).exists()


@pytest.mark.django_db
def test_a_reading_replaces_what_a_late_notification_from_before_it_said(
    read: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    during_a_reading(monkeypatch, lambda: hear("instance.power_off.end", instance(state="stopped"), ago(60)))
    synchronize()
    assert state() == "active"


@pytest.mark.django_db
def test_a_reading_replaces_a_notification_that_the_cloud_itself_dates_earlier(
    read: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The notification was sent after the reading began, and the server changed once more before it was read."""
    read.nova.servers[SERVER]["updated"] = "2026-03-02T10:00:05Z"
    earlier = instance(state="stopped", updated_at="2026-03-02T10:00:00Z")
    during_a_reading(monkeypatch, lambda: hear("instance.power_off.end", earlier))
    synchronize()
    assert state() == "active"


@pytest.mark.django_db
def test_a_lost_notification_is_made_up_for_by_the_next_reading(read: Emulator) -> None:
    hear("instance.power_off.end", instance(state="stopped"), ago(60))
    synchronize()
    assert state() == "active"


@pytest.mark.django_db
def test_a_ghost_that_a_late_creation_left_is_removed_by_the_next_reading(read: Emulator) -> None:
    hear("instance.delete.end", instance(uuid=NEW), ago(59))
    hear("instance.create.end", instance("InstanceCreatePayload", "1.13", uuid=NEW), ago(60))
    synchronize()
    assert not Server.objects.present().filter(uuid=NEW).exists()


@pytest.mark.django_db
def test_a_server_that_an_action_read_is_not_overwritten_by_an_older_notification(read: Emulator) -> None:
    read.nova.servers[SERVER]["updated"] = ago(5).isoformat()
    cloud().find_server(SERVER)
    assert not hear("instance.power_off.end", instance(state="stopped"), ago(10))


@pytest.mark.django_db
def test_a_server_that_a_notification_deleted_is_there_again_where_an_action_reads_it(read: Emulator) -> None:
    hear("instance.delete.end", instance())
    cloud().find_server(SERVER)
    assert state() == "active"


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_notification_waits_for_a_reading_that_is_being_written_and_is_then_older(
    read: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    rival = Rival(lambda: hear("instance.power_off.end", instance(state="stopped"), ago(60)))
    interrupt_after(monkeypatch, synchronization, "write_contents", rival)
    synchronize()
    assert (rival.result(), state()) == (False, "active")


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_notification_from_the_midst_of_a_reading_is_written_after_it(
    read: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    rival = Rival(stop)
    interrupt_after(monkeypatch, synchronization, "write_contents", rival)
    synchronize()
    assert (rival.result(), state()) == (True, "stopped")


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_reading_that_began_later_waits_for_a_notification_that_is_being_written_and_replaces_it(
    read: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    rival = Rival(synchronize)
    interrupt_after(monkeypatch, notified_objects, "write", rival)
    assert stop()
    rival.result()
    assert state() == "active"


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_reading_and_a_notification_insert_the_same_server_once(
    read: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    read.nova.add_server("new", "compute1")
    created = instance("InstanceCreatePayload", "1.13", uuid=NEW, display_name="new")
    rival = Rival(lambda: hear("instance.create.end", created))
    interrupt_after(monkeypatch, synchronization, "write_contents", rival)
    synchronize()
    rival.result()
    assert Server.objects.filter(uuid=NEW).count() == 1


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_an_action_and_a_notification_insert_the_same_server_once(
    read: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    read.nova.add_server("new", "compute1")
    created = instance("InstanceCreatePayload", "1.13", uuid=NEW, display_name="new")
    rival = Rival(lambda: hear("instance.create.end", created))
    interrupt_after(monkeypatch, mirroring, "write_row", rival)
    cloud().find_server(NEW)
    rival.result()
    assert Server.objects.filter(uuid=NEW).count() == 1


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_of_two_notifications_at_once_the_newer_one_stays(read: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    older = Rival(lambda: hear("instance.power_on.end", instance(state="active"), ago(2)))
    interrupt_after(monkeypatch, notified_objects, "write", older)
    assert hear("instance.power_off.end", instance(state="stopped"), ago(1))
    assert (older.result(), state()) == (False, "stopped")


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_volume_of_a_reading_and_of_a_notification_is_inserted_once(
    read: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    read.cinder.add_pool("block@lvm#gold", "lvm")
    read_cloud()
    read.cinder.add_volume(VOLUME, "data", "block@lvm#gold")
    rival = Rival(lambda: hear("volume.create.end", volume(size=20)))
    interrupt_after(monkeypatch, synchronization, "write_contents", rival)
    synchronize()
    assert (rival.result(), Volume.objects.get().size) == (True, 20)
    assert Synchronization.current().succeeded_at < timezone.now()  # type: ignore[operator]
