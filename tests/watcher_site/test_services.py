"""The rows of running processes: registering, signs of life, and leaving."""

from datetime import timedelta

import pytest
from django.utils import timezone

from plans.models import ActionPlan
from watcher_site.heartbeat import Heartbeat
from watcher_site.models import Service

pytestmark = pytest.mark.django_db
NAME = Service.APPLIER


def make_gone(host: str = "here") -> Service:
    seen = timezone.now() - timedelta(hours=1)
    return Service.objects.create(name=NAME, host=host, last_seen_up=seen)


def test_a_process_that_starts_is_active() -> None:
    assert Service.register(NAME, "here").status == "ACTIVE"


def test_a_restart_takes_the_row_of_the_process_that_is_gone() -> None:
    gone = make_gone()
    again = Service.register(NAME, "here")
    assert (again.pk, again.status, again.deleted_at) == (gone.pk, "ACTIVE", None)


def test_a_living_process_keeps_its_row() -> None:
    assert Service.register(NAME, "here").pk != Service.register(NAME, "here").pk


def test_a_row_of_another_host_is_left_alone() -> None:
    assert Service.register(NAME, "here").pk != make_gone("elsewhere").pk


def test_a_row_that_still_holds_work_is_left_alone() -> None:
    gone = make_gone()
    ActionPlan.objects.create(state="ONGOING", applier=gone)
    assert Service.register(NAME, "here").pk != gone.pk


def test_a_process_that_slept_finds_that_its_row_is_another_s() -> None:
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


def test_a_heartbeat_tells_that_the_row_is_lost() -> None:
    heartbeat = Heartbeat(make_gone())
    Service.register(NAME, "here")
    heartbeat.beat()
    assert heartbeat.lost
    assert not heartbeat.holds


def test_a_heartbeat_that_slept_through_its_lease_does_not_hold(settings: object) -> None:
    settings.SERVICE_DOWN_TIME = 0
    assert not Heartbeat(make_gone()).holds
