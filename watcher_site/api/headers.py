"""The headers of a request, each as WSGI gives it: `request.headers` of Django copies all of them at first sight."""

from functools import cache

from django.http.request import HttpHeaders
from rest_framework.request import Request


def header(request: Request, name: str) -> str | None:
    """Return what a header says, or None where the request has none of that name."""
    value: str | None = request.META.get(wsgi_name(name))
    return value


@cache
def wsgi_name(name: str) -> str:
    return HttpHeaders.to_wsgi_name(name)
