"""The rows of services: registration, heartbeats, leases and retirement."""

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


def make_failed(host: str = "here") -> Service:
    seen = timezone.now() - timedelta(hours=1)
    return Service.objects.create(name=NAME, host=host, last_seen_up=seen)


def test_registered_process_is_active() -> None:
    assert Service.register(NAME, "here").status == "ACTIVE"


def test_process_never_reuses_a_row() -> None:
    """A process without a heartbeat may only sleep."""
    rows = [make_failed(), Service.register(NAME, "here"), Service.register(NAME, "here")]
    assert len({row.pk for row in rows}) == 3


def test_registration_retires_failed_rows_of_its_host_without_work() -> None:
    make_failed()
    elsewhere, working = make_failed("elsewhere"), make_failed()
    ActionPlan.objects.create(state="ONGOING", applier=working)
    started = Service.register(NAME, "here")
    assert set(Service.objects.present()) == {started, elsewhere, working}


def test_heartbeat_of_a_retired_row_fails() -> None:
    slept = make_failed()
    Service.register(NAME, "here")
    assert not slept.beat()


def test_heartbeat_makes_a_failed_row_active() -> None:
    service = make_failed()
    assert service.beat()
    assert Service.objects.active().filter(pk=service.pk).exists()


def test_heartbeat_retires_failed_rows_of_its_host_without_work() -> None:
    service = Service.register(NAME, "here")
    gone, elsewhere = make_failed(), make_failed("elsewhere")
    working = make_failed()
    ActionPlan.objects.create(state="ONGOING", applier=working)
    service.beat()
    assert set(Service.objects.present()) == {service, elsewhere, working}
    assert gone not in Service.objects.present()


def test_retired_process_is_not_active() -> None:
    service = Service.register(NAME, "here")
    service.retire()
    assert not Service.objects.active().exists()


def test_retirement_of_a_lost_row_does_not_retire_its_successor() -> None:
    slept = make_failed()
    Service.register(NAME, "here")
    slept.retire()
    assert Service.objects.active().count() == 1


@pytest.mark.parametrize("error", [OperationalError("away"), InterfaceError("closed"), DataError("odd")])
def test_heartbeat_survives_every_database_error(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    heartbeat = Heartbeat(Service.register(NAME, "here"))
    monkeypatch.setattr(Service, "beat", raising(error))
    heartbeat.beat()
    assert heartbeat.holds


def test_heartbeat_with_a_dead_thread_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Heartbeat, "run", lambda self: None)
    heartbeat = Heartbeat(Service.register(NAME, "here"))
    heartbeat.start()
    heartbeat.thread.join()
    assert heartbeat.lost
    assert not heartbeat.holds


def test_stopped_heartbeat_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    heartbeat = Heartbeat(Service.register(NAME, "here"))
    heartbeat.start()
    heartbeat.stop()
    assert not heartbeat.lost


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="no clock here counts while the machine is suspended")
def test_lease_counts_the_time_of_a_suspended_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    heartbeat = Heartbeat(Service.register(NAME, "here"))
    later = time.clock_gettime(time.CLOCK_BOOTTIME) + 3600
    monkeypatch.setattr(time, "clock_gettime", {time.CLOCK_BOOTTIME: later}.__getitem__)
    assert not heartbeat.holds


def test_heartbeat_of_a_retired_row_is_lost() -> None:
    heartbeat = Heartbeat(make_failed())
    Service.register(NAME, "here")
    heartbeat.beat()
    assert heartbeat.lost
    assert not heartbeat.holds


def test_heartbeat_does_not_hold_after_its_lease(settings: object) -> None:
    settings.SERVICE_DOWN_TIME = 0
    assert not Heartbeat(make_failed()).holds
