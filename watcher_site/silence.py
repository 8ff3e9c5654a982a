"""Which kinds of services the site needs and which of these give no sign of life, for those who may see services."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.conf import settings

from watcher_site.models import Service
from watcher_site.models.services import ACTIVE, FAILED
from watcher_site.notifications.listeners import listeners

CONSEQUENCES = {
    Service.APPLIER: "action plans wait",
    Service.DECISION_ENGINE: "audits wait",
    Service.WORKER: "actions wait",
    Service.RELAY: "notifications wait",
}


class ServiceHealth(NamedTuple):
    """How the services of one name fare: how many there are by status, and the last sign of life of any."""

    name: str
    active: int
    failed: int
    last_seen_up: datetime | None
    problem: str | None


def needed() -> list[str]:
    """Return the names of the services without which something of this site waits."""
    names = [Service.APPLIER, Service.DECISION_ENGINE]
    if settings.EXECUTOR == "celery":
        names.append(Service.WORKER)
    if listeners.any:
        names.append(Service.RELAY)
    return names


def service_health() -> list[ServiceHealth]:
    """Return how all services fare, those that are needed and give no sign of life with the problem: one query."""
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
    problem = silence(name) if is_needed and not counts[ACTIVE] else None
    return ServiceHealth(name, counts[ACTIVE], counts[FAILED], max(seen, default=None), problem)


def silence(name: str) -> str:
    return f"No {name} is active: {CONSEQUENCES[name]}."


def find_silence(name: str) -> str | None:
    """Return what is wrong where no service of this name is active: one query."""
    return None if Service.objects.active().filter(name=name).exists() else silence(name)
