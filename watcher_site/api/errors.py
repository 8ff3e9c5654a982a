"""Conversion of exceptions and lost databases to responses whose bodies OpenStack clients can parse.

See docs/compatibility.md, "Errors".
"""

import sys
from collections.abc import Callable, Mapping
from http import HTTPStatus
from math import ceil
from select import POLLIN, poll
from typing import Any

import orjson
import structlog
from django.conf import settings
from django.core.exceptions import DisallowedHost, ObjectDoesNotExist, RequestDataTooBig
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django_fsm import ConcurrentTransition, TransitionNotAllowed
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import set_rollback

from watcher_site.api.versions import Version, format_version
from watcher_site.messages import cut
from watcher_site.monitoring.metrics import database_errors
from watcher_site.processes.worker import LOST_DATABASE
from watcher_site.refusals import LONGEST_MESSAGE, Refused

# In OpenStack's servers another layer returns these, with a title and code that some clients read.
TITLED = {status.HTTP_404_NOT_FOUND, status.HTTP_405_METHOD_NOT_ALLOWED, status.HTTP_406_NOT_ACCEPTABLE}
# In seconds; a failover or a restart of PostgreSQL takes at least as long.
RETRY_AFTER = 5
# Requests that are repeated when their connection to the database was lost.
SAFE_METHODS = ("GET", "HEAD")


class LengthRequired(exceptions.APIException):
    """A request body without Content-Length, which the server would not read."""

    status_code = status.HTTP_411_LENGTH_REQUIRED
    default_detail = "A body must come with its Content-Length."


class BodyTooLarge(exceptions.APIException):
    """A request body that is longer than `settings.DATA_UPLOAD_MAX_MEMORY_SIZE`, of which the server reads nothing."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE

    def __init__(self) -> None:
        super().__init__(f"The request body must not be larger than {settings.DATA_UPLOAD_MAX_MEMORY_SIZE} bytes.")


class NotAcceptableHere(exceptions.NotAcceptable):
    """The microversion of the request does not have a field or a resource."""

    def __init__(self, since: Version, field: str = "") -> None:
        """Name the first version that has it, and the field, if any."""
        subject = f"{field}: " if field else ""
        super().__init__(
            f"Request not acceptable. {subject}API microversion {format_version(since)} or higher is required."
        )


def body(code: int, message: str) -> dict[str, str]:
    """Return the error body: JSON inside a JSON string, as OpenStack clients expect it."""
    fault: dict[str, Any] = {
        "faultcode": "Server" if code >= 500 else "Client",
        "faultstring": message,
        "debuginfo": None,
    }
    if code in TITLED:
        fault |= {"code": code, "title": HTTPStatus(code).phrase, "description": message}
    return {"error_message": orjson.dumps(fault).decode()}


def unauthorized(message: str) -> dict[str, Any]:
    """Return the body of a 401 in Keystone's format, as OpenStack's servers do."""
    return {"error": {"code": 401, "title": "Unauthorized", "message": message}}


Body = dict[str, Any]
# The function that builds the error bodies of a mount from the status, the message and the exception, if any.
Fault = Callable[[int, str, Exception | None], Body]

COMPUTE_NAMES = {
    400: "badRequest",
    401: "unauthorized",
    403: "forbidden",
    404: "itemNotFound",
    405: "badMethod",
    409: "conflictingRequest",
    413: "overLimit",
    415: "badMediaType",
    429: "overLimit",
    501: "notImplemented",
    503: "serviceUnavailable",
}


def compute_fault(status: int, message: str, problem: Exception | None = None) -> Body:
    """Return an error body in Nova's format: one key, which names the kind of fault."""
    return {COMPUTE_NAMES.get(status, "computeFault"): {"code": status, "message": message}}


# Heat's names of the site's refusals, by class. Other errors are named after their status.
ORCHESTRATION_NAMES = {"NotFound": "EntityNotFound", "ActionInProgress": "ActionInProgress"}


def orchestration_fault(status: int, message: str, problem: Exception | None = None) -> Body:
    """Return an error body in Heat's format, always without a traceback."""
    phrase = HTTPStatus(status).phrase
    kind = ORCHESTRATION_NAMES.get(type(problem).__name__) or f"HTTP{phrase.replace(' ', '')}"
    error = {"type": kind, "message": message, "traceback": None}
    return {"code": status, "title": phrase, "explanation": message, "error": error}


FAULTS: Mapping[str, Fault] = {"compute": compute_fault, "orchestration": orchestration_fault}


def find_fault(path: str) -> Fault | None:
    """Return the function that builds error bodies for the mount of a path, or None outside mounts."""
    return FAULTS.get(path.split("/", 2)[1] if path.startswith("/") else "")


def flat(detail: Any, field: str = "") -> str:
    """Return the errors of a serializer as one sentence that names each field and its rule."""
    if isinstance(detail, dict):
        return " ".join(flat(value, f"{field}.{key}" if field else key) for key, value in detail.items())
    if isinstance(detail, list):
        return " ".join(flat(value, field) for value in detail)
    return f"Invalid input for field/attribute {field}. {detail}" if field else str(detail)


def body_for(path: str, code: int, message: str, problem: Exception | None = None) -> dict[str, Any]:
    """Return an error body in the format that the clients of this path expect."""
    message, fault = cut(message, LONGEST_MESSAGE), find_fault(path)
    return fault(code, message, problem) if fault else body(code, message)


def answer_problem(problem: Exception, context: dict[str, Any]) -> Response | None:
    """Convert an exception to a response, or return None for a 500: REST framework's exception handler."""
    set_rollback()
    if isinstance(problem, exceptions.APIException) and problem.status_code == status.HTTP_401_UNAUTHORIZED:
        message = "The request you have made requires authentication."
        return Response(unauthorized(message), problem.status_code, headers=headers_of(problem))
    found = describe_error(problem)
    if found is None:
        return None
    code, message = found
    return Response(body_for(context["request"].path, code, message, problem), code, headers=headers_of(problem))


def describe_error(problem: Exception) -> tuple[int, str] | None:
    """Return the status and the message for an exception, or None if it is an internal error."""
    if isinstance(problem, exceptions.APIException):
        return problem.status_code, flat(problem.detail)
    if isinstance(problem, Refused):
        return problem.status, str(problem)
    if isinstance(problem, ConcurrentTransition):
        return 409, "The state was changed by someone else at the same time."
    if isinstance(problem, TransitionNotAllowed):
        return 409, f"State transition not allowed: {problem}"
    if isinstance(problem, (Http404, ObjectDoesNotExist)):
        return 404, str(problem) or "Not found."
    return None


def headers_of(problem: Exception) -> dict[str, str]:
    header = getattr(problem, "auth_header", None)
    # REST framework's exception for throttled requests has the seconds in another attribute.
    seconds = getattr(problem, "retry_after", None) or ceil(getattr(problem, "wait", None) or 0)
    return ({"WWW-Authenticate": header} if header else {}) | ({"Retry-After": str(seconds)} if seconds else {})


# Responses outside of views: pages for the console and browsers, JSON error bodies for other clients.


def outside_views(request: HttpRequest, code: int, message: str) -> HttpResponse:
    is_lost_browser = code == 404 and request.method == "GET" and "text/html" in request.headers.get("Accept", "")
    if request.path.startswith("/console") or is_lost_browser:
        return render(request, f"{code}.html", {"message": message}, status=code)
    return HttpResponse(orjson.dumps(body_for(request.path, code, message)), "application/json", status=code)


def database_unavailable(request: HttpRequest) -> HttpResponse:
    """Return a 503 for a lost database, and mark the request."""
    request.is_database_lost = True  # type: ignore[attr-defined]
    database_errors.labels("request").inc()
    response = outside_views(request, 503, "The database does not answer. Try again later.")
    response["Retry-After"] = str(RETRY_AFTER)
    return response


def is_database_lost(problem: BaseException | None) -> bool:
    """Return whether an exception is, or was raised while handling, a failure of the connection to the database."""
    while problem is not None:
        if isinstance(problem, LOST_DATABASE):
            return True
        problem = problem.__cause__ or problem.__context__
    return False


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_database_lost(exception):  # Django reports a session that could not be saved as a deleted one.
        return database_unavailable(request)
    if isinstance(exception, RequestDataTooBig):
        return outside_views(request, 413, str(BodyTooLarge()))
    if isinstance(exception, DisallowedHost):
        return outside_views(request, 400, "The Host header names no host that this site answers to.")
    return outside_views(request, 400, "The request could not be understood.")


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return outside_views(request, 403, "You do not have the right to do this.")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return outside_views(request, 404, "The resource could not be found.")


def server_error(request: HttpRequest) -> HttpResponse:
    if isinstance(sys.exception(), LOST_DATABASE):
        return database_unavailable(request)
    return outside_views(request, 500, "The server failed to answer. The request id leads to the reason in its log.")


log = structlog.get_logger(__name__)


class DatabaseOutages:
    """Middleware that responds 503 while the database is unavailable.

    It repeats a safe request once if the connection was lost. Other requests are not, because the change may have been
    committed before the connection was lost.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: Any) -> HttpResponse:
        if has_unread_data():
            drop_lost_connection()
        request.is_database_lost = False
        response = self.get_response(request)
        if request.is_database_lost and drop_lost_connection() and request.method in SAFE_METHODS:
            request.is_database_lost = False
            response = self.get_response(request)
        if request.is_database_lost and response.status_code != HTTPStatus.SERVICE_UNAVAILABLE:
            # Another middleware failed too, for example when it saved the session.
            return database_unavailable(request)
        return response

    def process_exception(self, request: HttpRequest, problem: Exception) -> HttpResponse | None:
        """Respond 503 if the database was lost in a view. Error views handle exceptions of middleware."""
        if not isinstance(problem, LOST_DATABASE):
            return None
        log.warning("database lost", problem=str(problem).strip())
        return database_unavailable(request)


def has_unread_data() -> bool:
    """Return whether PostgreSQL sent data on this thread's idle connection, as it does when it closes the connection.

    This polls the socket, in a thousandth of the time of a query. It does not detect a connection that was lost
    silently; WATCHER_CONNECTION_CHECKS does, at the cost of a round trip.
    """
    current: Any = connection.connection
    if current is None or connection.vendor != "postgresql" or current.closed:
        return False
    socket = poll()
    socket.register(current.fileno(), POLLIN)
    return bool(socket.poll(0))


def drop_lost_connection() -> bool:
    """Close this thread's connection if it was lost, so that the next query opens a new one.

    Returns:
        Whether the thread has no connection now.
    """
    if connection.connection is not None and not connection.in_atomic_block and not connection.is_usable():
        connection.close()
    return connection.connection is None
