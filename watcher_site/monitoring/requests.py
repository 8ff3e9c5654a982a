"""The middleware that counts requests and measures their duration."""

from collections.abc import Callable
from time import perf_counter

from django.http import HttpRequest, HttpResponse

from watcher_site.monitoring.metrics import http_request_seconds, http_requests

# Clients may send any text as the method.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER_METHOD, UNMATCHED = "other", "unmatched"


class RequestMetrics:
    """Middleware that counts requests by view name, method and status, and measures their duration."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began = perf_counter()
        response = self.get_response(request)
        view, method = view_of(request), method_of(request)
        http_requests.labels(view, method, response.status_code).inc()
        http_request_seconds.labels(view, method).observe(perf_counter() - began)
        return response


def view_of(request: HttpRequest) -> str:
    return request.resolver_match.view_name if request.resolver_match else UNMATCHED


def method_of(request: HttpRequest) -> str:
    return request.method if request.method in METHODS else OTHER_METHOD
