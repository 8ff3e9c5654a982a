"""What every request passes through, API and console alike."""

from collections.abc import Callable
from functools import partial
from uuid import uuid4

from csp.constants import HEADER
from csp.middleware import CSPMiddleware
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from structlog.contextvars import bound_contextvars

from watcher_site.calling import caller_of, on_behalf_of
from watcher_site.client_addresses import client_address, is_trusted


class ClientAddress:
    """Put the client's address in the place of the proxy's, and drop what anyone but a trusted proxy forwards.

    The server's access log reads it from the same environment (`watcher_site.gunicorn`).
    """

    FORWARDED_FOR, FORWARDED_PROTO = "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO"

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        values, trusted = request.META, settings.TRUSTED_PROXIES
        peer, forwarded = values.get("REMOTE_ADDR", ""), values.get(self.FORWARDED_FOR, "")
        if not is_trusted(peer, trusted):
            values.pop(self.FORWARDED_PROTO, None)
        elif forwarded:
            values["REMOTE_ADDR"] = client_address(peer, forwarded, trusted)
        return self.get_response(request)


class RequestId:
    """Give every request an id, name it in each log line and answer with it, as OpenStack clients show it.

    What is done in a request is done for the person who sent it (`watcher_site.calling.on_behalf_of`).
    """

    header = "x-openstack-request-id"

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request_id = f"req-{uuid4()}"
        with bound_contextvars(request_id=request_id), on_behalf_of(partial(caller_of, request)):
            response = self.get_response(request)
        response[self.header] = request_id
        return response


class ContentSecurityPolicy(CSPMiddleware):
    """The pages' policy for all that did not bring one of its own, as the API's answers do."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        return response if HEADER in response else super().process_response(request, response)
