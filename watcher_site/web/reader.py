"""The language and time zone of a page's reader: the chosen ones, or those of the browser."""

from urllib.parse import unquote

from django.conf import settings
from django.http import HttpRequest
from django.utils import translation

from watcher_site.windows.wall_clock import zones

# The cookies of the chosen time zone, and of the browser's time zone, which a script on the pages sets.
ZONE, BROWSER_ZONE = "zone", "browser_zone"


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


def language_of(request: HttpRequest) -> str:
    """Return the language of a page: the chosen one, or that of the browser."""
    return chosen_language(request) or translation.get_language_from_request(request)


def zone_of(request: HttpRequest) -> str:
    """Return the time zone of a page: the chosen one, that of the browser, or UTC."""
    return chosen_zone(request) or known_zone(request, BROWSER_ZONE) or settings.TIME_ZONE
