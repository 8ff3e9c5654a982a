"""The rows of running processes: registering, signs of life, and leaving."""

import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import DataError, InterfaceError, OperationalError
from django.utils import timezone

from plans.models import ActionPlan
from watcher_site.models import Service
from watcher_site.processes.worker import Heartbeat

pytestmark = pytest.mark.django_db
NAME = Service.APPLIER


def raising(error: Exception) -> Callable[..., bool]:
    def method(self: object) -> bool:
        raise error

    return method


def make_gone(host: str = "here") -> Service:
    seen = timezone.now() - timedelta(hours=1)
    return Service.objects.create(name=NAME, host=host, last_seen_up=seen)


def test_a_process_that_starts_is_active() -> None:
    assert Service.register(NAME, "here").status == "ACTIVE"


def test_no_process_gets_the_row_of_another() -> None:
    """One that is taken for gone may only sleep."""
    rows = [make_gone(), Service.register(NAME, "here"), Service.register(NAME, "here")]
    assert len({row.pk for row in rows}) == 3


def test_a_process_that_starts_retires_gone_rows_of_its_host_that_hold_no_work() -> None:
    make_gone()
    elsewhere, working = make_gone("elsewhere"), make_gone()
    ActionPlan.objects.create(state="ONGOING", applier=working)
    started = Service.register(NAME, "here")
    assert set(Service.objects.present()) == {started, elsewhere, working}


def test_a_process_that_slept_finds_that_its_row_was_retired() -> None:
    slept = make_gone()
    Service.register(NAME, "here")
    assert not slept.beat()


def test_a_sign_of_life_is_seen() -> None:
    service = make_gone()
    assert service.beat()
    assert Service.objects.active().filter(pk=service.pk).exists()


def test_a_living_process_retires_gone_rows_of_its_host_that_hold_no_work() -> None:
    service = Service.register(NAME, "here")
    gone, elsewhere = make_gone(), make_gone("elsewhere")
    working = make_gone()
    ActionPlan.objects.create(state="ONGOING", applier=working)
    service.beat()
    assert set(Service.objects.present()) == {service, elsewhere, working}
    assert gone not in Service.objects.present()


def test_who_leaves_is_no_longer_active() -> None:
    service = Service.register(NAME, "here")
    service.retire()
    assert not Service.objects.active().exists()


def test_who_lost_its_row_does_not_retire_its_successor() -> None:
    slept = make_gone()
    Service.register(NAME, "here")
    slept.retire()
    assert Service.objects.active().count() == 1


@pytest.mark.parametrize("error", [OperationalError("away"), InterfaceError("closed"), DataError("odd")])
def test_a_heartbeat_outlives_every_database_error(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    heartbeat = Heartbeat(Service.register(NAME, "here"))
    monkeypatch.setattr(Service, "beat", raising(error))
    heartbeat.beat()
    assert heartbeat.holds


def test_a_heartbeat_whose_thread_died_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Heartbeat, "run", lambda self: None)
    heartbeat = Heartbeat(Service.register(NAME, "here"))
    heartbeat.start()
    heartbeat.thread.join()
    assert heartbeat.lost
    assert not heartbeat.holds


def test_a_heartbeat_that_was_stopped_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    heartbeat = Heartbeat(Service.register(NAME, "here"))
    heartbeat.start()
    heartbeat.stop()
    assert not heartbeat.lost


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="no clock here counts while the machine is suspended")
def test_the_time_that_the_machine_was_suspended_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    heartbeat = Heartbeat(Service.register(NAME, "here"))
    later = time.clock_gettime(time.CLOCK_BOOTTIME) + 3600
    monkeypatch.setattr(time, "clock_gettime", {time.CLOCK_BOOTTIME: later}.__getitem__)
    assert not heartbeat.holds


def test_a_heartbeat_tells_that_the_row_is_lost() -> None:
    heartbeat = Heartbeat(make_gone())
    Service.register(NAME, "here")
    heartbeat.beat()
    assert heartbeat.lost
    assert not heartbeat.holds


def test_a_heartbeat_that_slept_through_its_lease_does_not_hold(settings: object) -> None:
    settings.SERVICE_DOWN_TIME = 0
    assert not Heartbeat(make_gone()).holds
