"""Notifications about services of the site that become FAILED or ACTIVE."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import CharField, TextField, UUIDField, Value
from django.db.models.functions import MD5, Cast, Concat

from watcher_site.models import Service
from watcher_site.models.services import ACTIVE, FAILED, REPLACED
from watcher_site.outbox.kinds import INFO, WARNING, Event, Kind, Summary
from watcher_site.outbox.payloads import moment, versioned
from watcher_site.outbox.writing import announce, listeners

# Services have no UUID column: it is derived from the primary key.
IDENTITY = Cast(MD5(Concat(Value("service "), Cast("pk", TextField()), output_field=CharField())), UUIDField())


class ServiceNotifications(Kind):
    name = "service"
    label = "Service"
    identity = IDENTITY

    @property
    def model(self) -> type[Service]:
        return Service

    def snapshot(self) -> Mapping[str, Any]:
        return {"name": "name", "host": "host", "last_seen_up": "last_seen_up", "status": "told_status"}

    def summary(self, snapshot: Mapping[str, Any]) -> Summary:
        """Return the description of a service, with its host."""
        return Summary(f"{snapshot['name']} on {snapshot['host']}", snapshot["status"])

    def payload(self, notification: Any) -> dict[str, Any]:
        now = notification.snapshot
        update = {"old_state": notification.old_state, "state": now["status"]}
        data = {
            "sevice_host": now["host"],  # Watcher misspells this field.
            "name": now["name"],
            "last_seen_up": moment(now["last_seen_up"]),
            "status_update": versioned("ServiceStatusUpdatePayload", "1.0", update),
        }
        return versioned("ServiceUpdatePayload", "1.0", data)


def announce_services() -> None:
    """Announce each service whose status changed since a relay last checked. Only one relay announces a change."""
    if not listeners.any:
        return
    for service in Service.objects.present():
        is_replaced = service.told_status == REPLACED and service.status == FAILED
        if service.status != service.told_status and not is_replaced:
            announce_service(service, service.status)


@transaction.atomic
def announce_service(service: Service, status: str) -> None:
    announced = service.told_status
    if not Service.objects.present().filter(pk=service.pk, told_status=announced).update(told_status=status):
        return  # Another relay was first.
    if announced not in (None, REPLACED):
        event = Event("update", INFO if status == ACTIVE else WARNING)
        announce(ServiceNotifications.name, [event], [service.pk], announced)
