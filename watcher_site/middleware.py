"""What every request passes through, API and console alike."""

from collections.abc import Callable
from functools import partial
from uuid import uuid4

from csp.constants import HEADER
from csp.middleware import CSPMiddleware
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from structlog.contextvars import bound_contextvars

from watcher_site.calling import caller_of, on_behalf_of


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
