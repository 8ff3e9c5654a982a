"""What is told of the site's own processes."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.watcher_site.notifications.outbox import data, listen, payloads, told
from watcher_site.models import Notification, Service
from watcher_site.notifications.services import tell_of_services

pytestmark = pytest.mark.django_db


def test_a_service_that_fails_and_comes_back_is_told_of_each_time_once() -> None:
    listen()
    service = Service.register(Service.APPLIER, "ctrl-1")
    tell_of_services()
    assert told() == []
    Service.objects.update(last_seen_up=timezone.now() - timedelta(hours=1))
    tell_of_services()
    tell_of_services()
    Service.objects.update(last_seen_up=timezone.now())
    tell_of_services()
    assert list(Notification.objects.order_by("pk").values_list("priority", flat=True)) == ["WARN", "INFO"]
    failed, active = map(data, payloads("service.update"))
    assert (failed["sevice_host"], failed["name"]) == ("ctrl-1", service.name)
    assert data(failed["status_update"]) == {"old_state": "ACTIVE", "state": "FAILED"}
    assert data(active["status_update"]) == {"old_state": "FAILED", "state": "ACTIVE"}


def test_a_service_that_leaves_cleanly_is_not_told_of() -> None:
    listen()
    service = Service.register(Service.APPLIER, "ctrl-1")
    tell_of_services()
    service.retire()
    tell_of_services()
    assert told() == []
