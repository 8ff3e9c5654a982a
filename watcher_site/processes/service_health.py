"""The health of the site's services: the required ones, and those without an active process."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.conf import settings
from django.utils.translation import gettext_noop as _

from watcher_site.messages import StoredMessage, translate_message
from watcher_site.models import Service
from watcher_site.models.services import ACTIVE, FAILED
from watcher_site.outbox.writing import listeners

CONSEQUENCES = {
    Service.APPLIER: StoredMessage(_("action plans wait")),
    Service.DECISION_ENGINE: StoredMessage(_("audits wait")),
    Service.WORKER: StoredMessage(_("actions wait")),
    Service.RELAY: StoredMessage(_("notifications wait")),
    Service.LISTENER: StoredMessage(_("changes in the cloud are seen at the next reading")),
}
NONE_ACTIVE = StoredMessage(_("No %(service)s is active: %(consequence)s."), consequence=translate_message)


class Component(NamedTuple):
    """A part of the site, or a server on which it depends, with its problem or None."""

    name: str
    problem: str | None = None

    def as_dict(self) -> dict[str, str]:
        return {"status": "failed", "reason": self.problem} if self.problem else {"status": "ok"}


class ServiceHealth(NamedTuple):
    """The health of the services with one name: their number by status, and their last heartbeat."""

    name: str
    active: int
    failed: int
    last_seen_up: datetime | None
    problem: str | None


def needed() -> list[str]:
    """Return the names of the required services."""
    names = [Service.APPLIER, Service.DECISION_ENGINE]
    if settings.EXECUTOR == "celery":
        names.append(Service.WORKER)
    if listeners.any:
        names.append(Service.RELAY)
    if settings.CLOUD_NOTIFICATION_URL:
        names.append(Service.LISTENER)
    return names


def service_health() -> list[ServiceHealth]:
    """Return the health of all services with one query. A required service that is not active is a problem."""
    found = list(Service.objects.present())
    expected = needed()
    return [
        health_of(name, [service for service in found if service.name == name], name in expected)
        for name in CONSEQUENCES
        if name in expected or any(service.name == name for service in found)
    ]


def health_of(name: str, services: Sequence[Service], is_needed: bool) -> ServiceHealth:
    counts = Counter(service.status for service in services)
    seen = [service.last_seen_up for service in services if service.last_seen_up]
    inactive = describe_inactive(name) if is_needed and not counts[ACTIVE] else None
    problem = inactive or next((service.lag_problem for service in services if service.lag_problem), None)
    return ServiceHealth(name, counts[ACTIVE], counts[FAILED], max(seen, default=None), problem)


def describe_inactive(name: str) -> str:
    return NONE_ACTIVE.fill(service=name, consequence=CONSEQUENCES[name].text)


def find_inactive(name: str) -> str | None:
    """Return the problem if no service with this name is active, or None, with one query."""
    return None if Service.objects.active().filter(name=name).exists() else describe_inactive(name)
