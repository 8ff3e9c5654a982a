"""Requests are counted by view, method and status, and their durations are measured."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.api import Caller
from tests.builders import make_plan
from tests.watcher_site.monitoring.samples import growth_of, value_of


def test_request_is_counted_by_view_method_and_status(api: Caller) -> None:
    with growth_of("watcher_http_requests_total", view="api-goals", method="GET", status="200") as growth:
        api.get("/goals")
    assert growth.value == 1


def test_duration_of_a_request_is_measured(api: Caller) -> None:
    with growth_of("watcher_http_request_duration_seconds_count", view="api-goals", method="GET") as growth:
        api.get("/goals")
    assert growth.value == 1


def test_objects_of_one_view_are_counted_together(api: Caller) -> None:
    plans = [make_plan(), make_plan()]
    with growth_of("watcher_http_requests_total", view="api-action_plans-item", method="GET", status="200") as growth:
        for plan in plans:
            api.get(f"/action_plans/{plan.uuid}")
    assert growth.value == 2


def test_page_is_counted_by_the_name_of_its_view(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    with growth_of("watcher_http_requests_total", view="plans:list", method="GET", status="200") as growth:
        client.get("/console/plans/")
    assert growth.value == 1


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/no/such/path", "/v1/unknown", "/x/a8098c1a-f86e-11da-bd1a-00112444be1e"])
def test_paths_without_a_view_are_counted_together(client: Client, path: str) -> None:
    with growth_of("watcher_http_requests_total", view="unmatched", method="GET", status="404") as growth:
        client.get(path)
    assert growth.value == 1


@pytest.mark.django_db
def test_unknown_methods_are_counted_together(client: Client) -> None:
    with growth_of("watcher_http_requests_total", view="api-goals", method="other", status="401") as growth:
        client.generic("BREW", "/v1/goals")
    assert growth.value == 1
    assert value_of("watcher_http_requests_total", view="api-goals", method="BREW", status="401") == 0


def test_internal_error_is_counted_with_status_500(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(request: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(client, "raise_request_exception", False)
    monkeypatch.setattr("watcher_site.api.resources.health.require_database", lambda: fail(None))
    view = "watcher_site.api.resources.health.readyz"
    with growth_of("watcher_http_requests_total", view=view, method="GET", status="500") as growth:
        client.get("/readyz")
    assert growth.value == 1
