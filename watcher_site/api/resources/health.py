"""Health and metrics: ``/healthz`` (the process runs), ``/readyz`` (it can serve requests) and ``/metrics``.

Health probes require no login. Metrics are for users who may see undelivered notifications.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from math import inf
from threading import Lock
from time import monotonic
from typing import Any

import structlog
from django.conf import settings
from django.db import Error, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.module_loading import import_string
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.versioning import BaseVersioning
from rest_framework.views import APIView

from watcher_site.api.authentication import BasicAuthentication, BearerAuthentication, TokenAuthentication
from watcher_site.api.errors import RETRY_AFTER, drop_lost_connection
from watcher_site.api.versions import MINIMUM, Version
from watcher_site.api.views import VersionedView, record_refused_reading
from watcher_site.authorization.enforcement import find_policy_fault
from watcher_site.database.migration_state import read_migration_state
from watcher_site.models import Delivery
from watcher_site.monitoring.exposition import site_registry
from watcher_site.monitoring.metrics import broker_errors, database_errors
from watcher_site.notifications.broker_state import broker_state
from watcher_site.processes.broker import BrokerLost, require_broker
from watcher_site.processes.service_health import Component, service_health
from watcher_site.refusals import Refused

log = structlog.get_logger(__name__)
# Prometheus and monitoring probes send the token of their configuration as a Bearer token.
AUTHENTICATION = [TokenAuthentication, BearerAuthentication, BasicAuthentication, SessionAuthentication]
CREDENTIALS = {"Authorization", "X-Auth-Token"}


class NotReady(Exception):
    """The site cannot serve requests. The message gives the reason and may be shown to anyone."""


@cache
def require_migrations() -> None:
    """Raise `NotReady` if migrations are not applied. Once they are, the database is not queried again."""
    if read_migration_state().unapplied:
        raise NotReady("Migrations are not applied.")


def require_database() -> None:
    try:
        drop_lost_connection()
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        require_migrations()
    except Error as problem:
        # The message of the driver names hosts and users, and is only logged.
        database_errors.labels("probe").inc()
        log.warning("The database does not answer.", reason=str(problem).strip())
        raise NotReady("The database does not answer.") from problem


class BrokerWatch:
    """Checks the broker, and caches the result for `SECONDS` for all callers.

    Each check opens a connection to the broker, and anyone may call the probe: only one check runs at a time.
    """

    SECONDS = 2

    def __init__(self) -> None:
        self.lock = Lock()
        self.forget()

    def forget(self) -> None:
        self.checked_at, self.is_available = -inf, False

    def require(self) -> None:
        with self.lock:
            if monotonic() - self.checked_at >= self.SECONDS:
                self.is_available = self.check()
                self.checked_at = monotonic()
        if not self.is_available:
            raise NotReady("The broker does not answer: action plans wait.")

    def check(self) -> bool:
        try:
            require_broker()
        except BrokerLost as problem:
            broker_errors.labels("actions").inc()
            log.warning("The broker does not answer.", reason=str(problem).strip())
            return False
        return True


broker_watch = BrokerWatch()


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
        return unavailable(problem)
    details = details_for(request)
    try:
        broker_watch.require()
    except NotReady as problem:
        return unavailable(problem, details)
    return JsonResponse({"status": "ok", **policy_fault(), **details})


def unavailable(problem: NotReady, details: Mapping[str, Any] | None = None) -> HttpResponse:
    body = {"status": "unavailable", "reason": str(problem), **(details or {})}
    return JsonResponse(body, status=503, headers={"Retry-After": str(RETRY_AFTER)})


def policy_fault() -> dict[str, str]:
    """Return the error in the policy file, if any. The site is ready nevertheless, with the previous rules."""
    fault = find_policy_fault()
    return {"policy_file": f"{fault} The rules of before count."} if fault else {}


def details_for(request: HttpRequest) -> dict[str, Any]:
    """Return the state of the site's other processes for a user who may see services, else an empty dictionary.

    A missing service does not make this process unready: it can serve requests, and the status stays 200.
    """
    if not (CREDENTIALS & request.headers.keys() or settings.SESSION_COOKIE_NAME in request.COOKIES):
        return {}
    try:
        user = APIView(authentication_classes=AUTHENTICATION).initialize_request(request).user
    except (APIException, Refused):
        return {}
    if not user.has_perm("watcher_site.view_service"):
        return {}
    found = service_health()
    problems = [service.problem for service in found if service.problem]
    components = {part.name: part.as_dict() for part in [*find_own_components(), *find_other_components()]}
    components |= {service.name: Component(service.name, service.problem).as_dict() for service in found}
    return {"components": components, "services": [service._asdict() for service in found], "problems": problems}


def find_own_components() -> Iterator[Component]:
    """Return the state of the database, which has responded before, and of the brokers."""
    yield Component("database")
    if settings.EXECUTOR == "celery":
        try:
            broker_watch.require()
            yield Component("broker")
        except NotReady as problem:
            yield Component("broker", str(problem))
    if settings.NOTIFICATION_URL:
        yield Component("notification-broker", broker_state().problem)


def find_other_components() -> Iterator[Component]:
    for path in settings.HEALTH_COMPONENTS:
        if component := import_string(path)():
            yield component


class Unversioned(BaseVersioning):
    """The version of a view without microversions: Prometheus sends the version of its own format in Accept."""

    def determine_version(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Version:  # type: ignore[override]
        return MINIMUM


class MetricsView(VersionedView):
    """The metrics of the site in the Prometheus format."""

    versioning_class = Unversioned

    authentication_classes = AUTHENTICATION
    model = Delivery
    policy = "metrics"
    permissions_required: dict[str, str] = {}
    action = "get"
    detail = False

    def policy_name(self) -> str:
        return "metrics:get"

    def handle_exception(self, problem: Exception) -> Response:
        response: Response = super().handle_exception(problem)
        record_refused_reading(self, problem, response)
        return response

    def history_event(self) -> str:
        return "metrics.view"

    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(generate_latest(site_registry()), content_type=CONTENT_TYPE_PLAIN_0_0_4)
