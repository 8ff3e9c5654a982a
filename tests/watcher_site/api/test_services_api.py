"""Services through the API."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from tests.api import Caller, fault
from watcher_site.models import Service

pytestmark = pytest.mark.django_db


def make_service(seconds_ago: float = 0) -> Service:
    seen = timezone.now() - timedelta(seconds=seconds_ago)
    return Service.objects.create(name=Service.APPLIER, host="ctrl-1", last_seen_up=seen)


def test_recently_seen_service_is_active(api: Caller) -> None:
    make_service()
    assert api.get("/services").json()["services"][0]["status"] == "ACTIVE"


def test_service_without_recent_heartbeat_is_failed(api: Caller) -> None:
    make_service(settings.SERVICE_DOWN_TIME + 1)
    assert api.get("/services/detail").json()["services"][0]["status"] == "FAILED"


@pytest.mark.parametrize("by", ["id", "name"])
def test_service_is_found_by_id_and_by_name(api: Caller, by: str) -> None:
    service = make_service()
    assert api.get(f"/services/{getattr(service, by)}").json()["id"] == service.pk


def test_last_seen_up_has_no_time_zone(api: Caller) -> None:
    shown = api.get(f"/services/{make_service().pk}").json()["last_seen_up"]
    assert "+" not in shown
    assert not shown.endswith("Z")


def test_marker_is_a_service_id(api: Caller) -> None:
    first, second = make_service(), make_service()
    assert [row["id"] for row in api.get(f"/services/?marker={first.pk}").json()["services"]] == [second.pk]


@pytest.mark.parametrize("identifier", ["99", "nope", "9" * 40])
def test_unknown_service_is_404(api: Caller, identifier: str) -> None:
    answer = api.get(f"/services/{identifier}")
    assert answer.status_code == 404
    assert fault(answer) == f"The service {identifier} cannot be found."


def test_status_is_not_a_sort_key(api: Caller) -> None:
    assert api.get("/services/?sort_key=status").status_code == 400
