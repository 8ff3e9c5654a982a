"""The middleware that traces requests."""

from collections.abc import Callable
from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from watcher_site.monitoring.requests import method_of, view_of
from watcher_site.monitoring.tracing import TRACE_ID, TRACEPARENT, Span, tracing
from watcher_site.web.middleware import RequestId

# Requested by load balancers and Prometheus every few seconds.
UNTRACED = frozenset({"/healthz", "/readyz", "/metrics"})


class RequestSpans:
    """Records each request as a span, which continues the trace of its header ``traceparent``."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path in UNTRACED or request.path.startswith(settings.STATIC_URL):
            return self.get_response(request)
        method = method_of(request)
        attributes = {"http.request.method": method, "url.path": request.path}
        with tracing.span(method, attributes, kind="SERVER", parent=request.headers.get(TRACEPARENT)) as span:
            request.META[TRACE_ID] = span.trace_id
            response = self.get_response(request)
            add_outcome(span, request, response)
        return response


def add_outcome(span: Span, request: HttpRequest, response: HttpResponse) -> None:
    """Add the outcome of a request to its span."""
    span.rename(f"{method_of(request)} {view_of(request)}")
    span.set("http.route", request.resolver_match and request.resolver_match.route)
    span.set("http.response.status_code", response.status_code)
    span.set("watcher.request_id", response.get(RequestId.header))
    if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        span.fail(str(response.status_code))
