"""Health for probes, without a login: ``/healthz`` says that the process lives, ``/readyz`` that it can serve."""

from functools import cache

import structlog
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

log = structlog.get_logger(__name__)


class NotReady(Exception):
    """Why the site cannot serve; the message is for anyone to read."""


@cache
def require_migrations() -> None:
    """Raise `NotReady` until every migration was applied. Asked of the database until then, and not again."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise NotReady("Migrations are not applied.")


def require_database() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        require_migrations()
    except Error as problem:
        # What the driver says names hosts and users: it is for the log.
        log.warning("The database does not answer.", reason=str(problem).strip())
        raise NotReady("The database does not answer.") from problem


@never_cache
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    try:
        require_database()
    except NotReady as problem:
        return JsonResponse({"status": "unavailable", "reason": str(problem)}, status=503)
    return JsonResponse({"status": "ok"})
