"""The language and the time zone of the reader of a page: the chosen ones, or those of the browser."""

from collections.abc import Callable
from urllib.parse import unquote

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers

from watcher_site.windows.wall_clock import zones

# The cookie of a chosen time zone, and that of the browser's own, which a script of the pages sets.
ZONE, BROWSER_ZONE = "zone", "browser_zone"
# The paths of pages for people. All other answers, which programs read, are in English and in UTC.
PAGES = ("/console", "/docs", "/v1/docs")


def chosen_language(request: HttpRequest) -> str:
    """Return the language that the reader has chosen, or an empty text for that of the browser."""
    language = request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "")
    return language if language in dict(settings.LANGUAGES) else ""


def chosen_zone(request: HttpRequest) -> str:
    """Return the time zone that the reader has chosen, or an empty text for that of the browser."""
    return known_zone(request, ZONE)


def known_zone(request: HttpRequest, cookie: str) -> str:
    zone = unquote(request.COOKIES.get(cookie, ""))
    return zone if zone in zones() else ""


class ReaderPreferences:
    """Activate the language and the time zone of the reader for requests of pages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(PAGES):
            return self.get_response(request)
        language = chosen_language(request) or translation.get_language_from_request(request)
        zone = chosen_zone(request) or known_zone(request, BROWSER_ZONE) or settings.TIME_ZONE
        with translation.override(language), timezone.override(zone):
            response = self.get_response(request)
        response.headers.setdefault("Content-Language", language)
        patch_vary_headers(response, ["Accept-Language"])
        return response
