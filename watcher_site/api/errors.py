"""Turn exceptions into a status and the one error body that existing clients parse.

See docs/compatibility.md, "Errors".
"""

import sys
from http import HTTPStatus
from typing import Any

import orjson
from django.core.exceptions import DisallowedHost, ObjectDoesNotExist
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django_fsm import ConcurrentTransition, TransitionNotAllowed
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import set_rollback

from watcher_site.api.mounts.faults import find_fault
from watcher_site.api.versions import Version, format_version
from watcher_site.messages import cut
from watcher_site.processes.worker import LOST_DATABASE
from watcher_site.refusals import LONGEST_MESSAGE, Refused

# These come from another layer of existing servers, whose words some clients read.
TITLED = {status.HTTP_404_NOT_FOUND, status.HTTP_405_METHOD_NOT_ALLOWED, status.HTTP_406_NOT_ACCEPTABLE}


# In seconds; a failover or a restart of PostgreSQL takes at least as long.
RETRY_AFTER = 5


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
    header, seconds = getattr(problem, "auth_header", None), getattr(problem, "retry_after", None)
    return ({"WWW-Authenticate": header} if header else {}) | ({"Retry-After": str(seconds)} if seconds else {})


# What Django answers where no view does: pages for the console, the error body for everybody else.


def outside_views(request: HttpRequest, code: int, message: str) -> HttpResponse:
    if request.path.startswith("/console"):
        return render(request, f"{code}.html", {"message": message}, status=code)
    return HttpResponse(orjson.dumps(body_for(request.path, code, message)), "application/json", status=code)


def database_unavailable(request: HttpRequest) -> HttpResponse:
    """Answer that the database did not answer, and note that on the request."""
    request.is_database_lost = True  # type: ignore[attr-defined]
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
