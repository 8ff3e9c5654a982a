"""Requests during which the database does not answer."""

from collections.abc import Callable
from http import HTTPStatus
from select import POLLIN, poll
from typing import Any

import structlog
from django.db import connection
from django.http import HttpRequest, HttpResponse

from watcher_site.api.errors import database_unavailable
from watcher_site.processes.worker import LOST_DATABASE

log = structlog.get_logger(__name__)
SAFE_METHODS = ("GET", "HEAD")


class DatabaseOutages:
    """Answer 503 while the database does not answer, and repeat a safe request once if its connection was lost.

    A request that changes something is not repeated: its change may have been committed before the connection
    was lost.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if has_unread_data():
            drop_lost_connection()
        response = self.get_response(request)
        if is_outage(request) and drop_lost_connection() and request.method in SAFE_METHODS:
            request.is_database_lost = False  # type: ignore[attr-defined]
            response = self.get_response(request)
        if is_outage(request) and response.status_code != HTTPStatus.SERVICE_UNAVAILABLE:
            # Another middleware failed as well, such as that which saves the session.
            return database_unavailable(request)
        return response

    def process_exception(self, request: HttpRequest, problem: Exception) -> HttpResponse | None:
        """Answer 503 to a lost database in a view; the site's error views answer exceptions of middleware."""
        if not isinstance(problem, LOST_DATABASE):
            return None
        log.warning("database lost", problem=str(problem).strip())
        return database_unavailable(request)


def is_outage(request: HttpRequest) -> bool:
    return getattr(request, "is_database_lost", False)


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
