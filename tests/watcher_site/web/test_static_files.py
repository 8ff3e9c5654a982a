"""Static files have names with a hash of their content, under which they are cached for a year."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.staticfiles.storage import staticfiles_storage
from django.http import HttpResponse, HttpResponseBase
from django.test import Client, RequestFactory
from django.urls import reverse

from watcher_site import settings as site
from watcher_site.web.static_files import StaticFiles

pytestmark = pytest.mark.django_db

NAME = "watcher_site/console.css"
YEAR = "max-age=31536000, public, immutable"
MINUTE = "max-age=60, public"
OF_ANOTHER_RELEASE = "/static/watcher_site/console.0123456789ab.css"

Get = Callable[[str], HttpResponseBase]


@pytest.fixture(autouse=True)
def storage_of_the_site(settings: Any) -> None:
    settings.STORAGES = site.STORAGES


@pytest.fixture(params=["listed at the start", "found at the request"])
def get(request: Any, settings: Any) -> Get:
    """Return a function that requests a static file, as in production or as in development."""
    settings.WHITENOISE_AUTOREFRESH = request.param == "found at the request"
    middleware = StaticFiles(lambda request: HttpResponse(status=404))
    return lambda path: middleware(RequestFactory().get(path))


def test_pages_link_to_hashed_file_names(client: Client) -> None:
    page = client.get(reverse("login")).content.decode()
    assert staticfiles_storage.url(NAME) in page
    assert f"/static/{NAME}" not in page


def test_hashed_file_is_cached_for_a_year(get: Get) -> None:
    answer = get(staticfiles_storage.url(NAME))
    assert (answer.status_code, answer["Cache-Control"]) == (200, YEAR)


@pytest.mark.parametrize("path", [f"/static/{NAME}", OF_ANOTHER_RELEASE])
def test_file_without_its_current_hash_is_cached_for_a_minute(get: Get, path: str) -> None:
    answer = get(path)
    assert (answer.status_code, answer["Cache-Control"]) == (200, MINUTE)
    assert "text/css" in answer["Content-Type"]


def test_missing_file_with_a_hash_is_404(get: Get) -> None:
    assert get("/static/watcher_site/missing.0123456789ab.css").status_code == 404
