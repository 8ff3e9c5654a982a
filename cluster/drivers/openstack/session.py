"""A session of keystoneauth that measures requests to the cloud, adds a request id, and avoids idle connections."""

from contextlib import closing
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from keystoneauth1 import exceptions
from keystoneauth1.session import Session, TCPKeepAliveAdapter
from requests import PreparedRequest, Response
from structlog.contextvars import get_contextvars

from watcher_site.monitoring.metrics import cloud_request_seconds, cloud_requests
from watcher_site.monitoring.tracing import tracing

# The label of requests to addresses outside of the catalog: logins and discovery.
NO_SERVICE = "none"
# The status of a request without a response.
LOST = 0
# The methods of requests without side effects.
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}


class ConnectionAdapter(TCPKeepAliveAdapter):
    """Sends requests with side effects over new connections, and only other requests over idle ones.

    A service or proxy may close an idle connection while a request is sent over it. Whether the service received the
    request is then unknown, and a request with side effects cannot be repeated.
    """

    def send(self, request: PreparedRequest, *arguments: Any, **options: Any) -> Response:
        if request.method in SAFE_METHODS:
            return super().send(request, *arguments, **options)
        # The connection of a closed adapter ends when the response has been read.
        with closing(TCPKeepAliveAdapter()) as adapter:
            return adapter.send(request, *arguments, **options)


class CloudSession(Session):
    """A session that measures its requests and sends the id of the request to the site that caused them.

    The header is X-OpenStack-Request-ID, which OpenStack services log as the global request id.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for scheme in ("http://", "https://"):
            self.session.mount(scheme, ConnectionAdapter())

    def request(self, url: str, method: str, *arguments: Any, **options: Any) -> Any:
        options["global_request_id"] = options.get("global_request_id") or global_request_id()
        if method == "GET":
            # openstacksdk sends requests to Ironic six times, and each of these would be one of our attempts.
            options["status_code_retries"] = 0
        service = (options.get("endpoint_filter") or {}).get("service_type") or NO_SERVICE
        began, status = perf_counter(), LOST
        with tracing.span(f"{method} {service}", request_attributes(url, method), kind="CLIENT") as span:
            options["headers"] = {**(options.get("headers") or {}), **tracing.context()}
            try:
                response = super().request(url, method, *arguments, **options)
                status = response.status_code
                return response
            except exceptions.HttpError as problem:
                status = problem.http_status
                raise
            finally:
                cloud_requests.labels(service, method, status).inc()
                cloud_request_seconds.labels(service, method).observe(perf_counter() - began)
                span.set("http.response.status_code", status or None)
                span.set("watcher.request_id", options["global_request_id"])


def request_attributes(url: str, method: str) -> dict[str, Any]:
    """Return the attributes of the span of a request, without the query of its URL."""
    parts = urlsplit(url)
    return {"http.request.method": method, "server.address": parts.hostname, "url.path": parts.path}


def global_request_id() -> str | None:
    """Return the id of the request that caused the work of this thread, or one from its action's or audit's UUID."""
    context = get_contextvars()
    cause = context.get("action") or context.get("audit")
    return context.get("request_id") or (f"req-{cause}" if cause else None)
