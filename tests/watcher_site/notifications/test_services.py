"""Notifications of failed and recovered services."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.watcher_site.notifications.outbox import data, listen, payloads, written_event_types
from watcher_site.models import Notification, Service
from watcher_site.notifications.services import announce_services

pytestmark = pytest.mark.django_db


def test_failure_and_recovery_of_a_service_are_notified_once_each() -> None:
    listen()
    service = Service.register(Service.APPLIER, "ctrl-1")
    announce_services()
    assert written_event_types() == []
    Service.objects.update(last_seen_up=timezone.now() - timedelta(hours=1))
    announce_services()
    announce_services()
    Service.objects.update(last_seen_up=timezone.now())
    announce_services()
    assert list(Notification.objects.order_by("pk").values_list("priority", flat=True)) == ["WARN", "INFO"]
    failed, active = map(data, payloads("service.update"))
    assert (failed["sevice_host"], failed["name"]) == ("ctrl-1", service.name)
    assert data(failed["status_update"]) == {"old_state": "ACTIVE", "state": "FAILED"}
    assert data(active["status_update"]) == {"old_state": "FAILED", "state": "ACTIVE"}


def test_service_that_stops_cleanly_is_not_notified() -> None:
    listen()
    service = Service.register(Service.APPLIER, "ctrl-1")
    announce_services()
    service.retire()
    announce_services()
    assert written_event_types() == []


def fail(service: Service) -> None:
    Service.objects.filter(pk=service.pk).update(last_seen_up=timezone.now() - timedelta(hours=1))
    announce_services()


def updates() -> list[tuple[str, dict[str, str]]]:
    """Return the notifications: their priorities, and the states before and after."""
    priorities = Notification.objects.order_by("pk").values_list("priority", flat=True)
    return list(
        zip(priorities, [data(one["status_update"]) for one in map(data, payloads("service.update"))], strict=True)
    )


TO_FAILED = ("WARN", {"old_state": "ACTIVE", "state": "FAILED"})
TO_ACTIVE = ("INFO", {"old_state": "FAILED", "state": "ACTIVE"})


def test_successor_of_a_failed_service_is_notified_once() -> None:
    listen()
    dead = Service.register(Service.APPLIER, "ctrl-1")
    announce_services()
    fail(dead)
    successor = Service.register(Service.APPLIER, "ctrl-1")
    for _ in range(2):
        successor.beat()
        announce_services()
    assert updates() == [TO_FAILED, TO_ACTIVE]


def test_successor_started_before_the_failure_is_notified_with_the_failure() -> None:
    listen()
    dead = Service.register(Service.APPLIER, "ctrl-1")
    successor = Service.register(Service.APPLIER, "ctrl-1")
    announce_services()
    fail(dead)
    for _ in range(2):
        successor.beat()
        announce_services()
    assert updates() == [TO_FAILED, TO_ACTIVE]


def test_only_one_of_two_successors_is_notified() -> None:
    listen()
    dead = Service.register(Service.APPLIER, "ctrl-1")
    announce_services()
    fail(dead)
    for _ in range(2):
        Service.register(Service.APPLIER, "ctrl-1")
    announce_services()
    assert updates() == [TO_FAILED, TO_ACTIVE]


def test_service_of_another_host_or_name_or_an_older_service_is_no_successor() -> None:
    listen()
    older = Service.register(Service.APPLIER, "ctrl-1")
    dead = Service.register(Service.APPLIER, "ctrl-1")
    announce_services()
    fail(dead)
    Service.register(Service.APPLIER, "ctrl-2")
    Service.register(Service.DECISION_ENGINE, "ctrl-1")
    older.clear_failed_status()
    announce_services()
    assert updates() == [TO_FAILED]


def test_replaced_service_that_resumes_is_not_notified_again() -> None:
    listen()
    slept = Service.register(Service.APPLIER, "ctrl-1")
    announce_services()
    fail(slept)
    Service.objects.create(name=slept.name, host=slept.host, last_seen_up=timezone.now()).clear_failed_status()
    announce_services()
    Service.objects.update(last_seen_up=timezone.now())
    announce_services()
    assert updates() == [TO_FAILED, TO_ACTIVE]
