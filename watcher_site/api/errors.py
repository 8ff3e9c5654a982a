"""Answer exceptions, and a database that does not answer, with a status and the body that existing clients parse.

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
from django.core.exceptions import DisallowedHost, ObjectDoesNotExist
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

# These come from another layer of existing servers, whose words some clients read.
TITLED = {status.HTTP_404_NOT_FOUND, status.HTTP_405_METHOD_NOT_ALLOWED, status.HTTP_406_NOT_ACCEPTABLE}
# In seconds; a failover or a restart of PostgreSQL takes at least as long.
RETRY_AFTER = 5
# Requests that are repeated when their connection to the database was lost.
SAFE_METHODS = ("GET", "HEAD")


class LengthRequired(exceptions.APIException):
    """A body that does not say how long it is: the server would not see it."""

    status_code = status.HTTP_411_LENGTH_REQUIRED
    default_detail = "A body must come with its Content-Length."


class NotAcceptableHere(exceptions.NotAcceptable):
    """A field or a resource that the request's microversion does not have."""

    def __init__(self, since: Version, field: str = "") -> None:
        """Name the version that brought it, and the field, where it is one."""
        subject = f"{field}: " if field else ""
        super().__init__(
            f"Request not acceptable. {subject}API microversion {format_version(since)} or higher is required."
        )


def body(code: int, message: str) -> dict[str, str]:
    """Return the error body: JSON inside a JSON string, as existing clients expect it."""
    fault: dict[str, Any] = {
        "faultcode": "Server" if code >= 500 else "Client",
        "faultstring": message,
        "debuginfo": None,
    }
    if code in TITLED:
        fault |= {"code": code, "title": HTTPStatus(code).phrase, "description": message}
    return {"error_message": orjson.dumps(fault).decode()}


def unauthorized(message: str) -> dict[str, Any]:
    """Return the body of a 401, which existing servers give in Keystone's shape."""
    return {"error": {"code": 401, "title": "Unauthorized", "message": message}}


Body = dict[str, Any]
# The function that makes the error bodies of a mount, of the status, the message and, if there is one, the exception.
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
    """Return Nova's: one key, which names the kind of fault."""
    return {COMPUTE_NAMES.get(status, "computeFault"): {"code": status, "message": message}}


# What Heat calls a refusal of ours, by its class; others have the name of their status.
ORCHESTRATION_NAMES = {"NotFound": "EntityNotFound", "ActionInProgress": "ActionInProgress"}


def orchestration_fault(status: int, message: str, problem: Exception | None = None) -> Body:
    """Return an error body in Heat's format, always without a traceback."""
    phrase = HTTPStatus(status).phrase
    kind = ORCHESTRATION_NAMES.get(type(problem).__name__) or f"HTTP{phrase.replace(' ', '')}"
    error = {"type": kind, "message": message, "traceback": None}
    return {"code": status, "title": phrase, "explanation": message, "error": error}


FAULTS: Mapping[str, Fault] = {"compute": compute_fault, "orchestration": orchestration_fault}


def find_fault(path: str) -> Fault | None:
    """Return what makes the error bodies below a path; None where the site speaks as itself."""
    return FAULTS.get(path.split("/", 2)[1] if path.startswith("/") else "")


def flat(detail: Any, field: str = "") -> str:
    """Put the findings of a serializer into one sentence that names each field and its rule."""
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
    """Answer an exception, or leave it to the site's 500: REST framework's exception handler."""
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
    """Return the status and the words that an exception is answered with; None where it is a fault of our own."""
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
    # REST framework's refusal of too many requests says so in another attribute.
    seconds = getattr(problem, "retry_after", None) or ceil(getattr(problem, "wait", None) or 0)
    return ({"WWW-Authenticate": header} if header else {}) | ({"Retry-After": str(seconds)} if seconds else {})


# What Django answers where no view does: pages for the console, the error body for everybody else.


def outside_views(request: HttpRequest, code: int, message: str) -> HttpResponse:
    is_lost_browser = code == 404 and request.method == "GET" and "text/html" in request.headers.get("Accept", "")
    if request.path.startswith("/console") or is_lost_browser:
        return render(request, f"{code}.html", {"message": message}, status=code)
    return HttpResponse(orjson.dumps(body_for(request.path, code, message)), "application/json", status=code)


def database_unavailable(request: HttpRequest) -> HttpResponse:
    """Answer that the database did not answer, and note that on the request."""
    request.is_database_lost = True  # type: ignore[attr-defined]
    database_errors.labels("request").inc()
    response = outside_views(request, 503, "The database does not answer. Try again later.")
    response["Retry-After"] = str(RETRY_AFTER)
    return response


def is_database_lost(problem: BaseException | None) -> bool:
    """Return whether an exception is, or was raised while handling, one of a database that does not answer."""
    while problem is not None:
        if isinstance(problem, LOST_DATABASE):
            return True
        problem = problem.__cause__ or problem.__context__
    return False


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_database_lost(exception):  # Django reports a session that could not be saved as a deleted one.
        return database_unavailable(request)
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
    """Answer 503 while the database does not answer, and repeat a safe request once if its connection was lost.

    A request that changes something is not repeated: its change may have been committed before the connection
    was lost.
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
            # Another middleware failed as well, such as that which saves the session.
            return database_unavailable(request)
        return response

    def process_exception(self, request: HttpRequest, problem: Exception) -> HttpResponse | None:
        """Answer 503 to a lost database in a view; the site's error views answer exceptions of middleware."""
        if not isinstance(problem, LOST_DATABASE):
            return None
        log.warning("database lost", problem=str(problem).strip())
        return database_unavailable(request)


def has_unread_data() -> bool:
    """Return whether PostgreSQL sent something on this thread's idle connection, as it does when it ends one.

    This polls the socket, and takes a thousandth of the time of a single read. A connection that was lost silently is
    not noticed; WATCHER_CONNECTION_CHECKS detects it, at the cost of a round trip.
    """
    kept: Any = connection.connection
    if kept is None or connection.vendor != "postgresql" or kept.closed:
        return False
    socket = poll()
    socket.register(kept.fileno(), POLLIN)
    return bool(socket.poll(0))


def drop_lost_connection() -> bool:
    """Close this thread's connection if it was lost, so that the next query makes a new one.

    Returns:
        Whether the thread has no connection now.
    """
    if connection.connection is not None and not connection.in_atomic_block and not connection.is_usable():
        connection.close()
    return connection.connection is None
