"""``/v1/services``: the processes of the site and their status (docs/compatibility.md, "Services")."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers

from watcher_site.api.serializers import ResourceSerializer, Row, ZonelessTimeField, links_field, without_zone
from watcher_site.api.versions import Version
from watcher_site.api.views import ResourceView
from watcher_site.models import Service


class ServiceSerializer(ResourceSerializer):
    id = serializers.IntegerField()
    name = serializers.ChoiceField(
        [Service.DECISION_ENGINE, Service.APPLIER, Service.WORKER, Service.RELAY, Service.LISTENER]
    )
    host = serializers.CharField()
    status = serializers.ChoiceField(["ACTIVE", "FAILED"])
    links = links_field()
    last_seen_up = ZonelessTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(allow_null=True)
    deleted_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        collection = "services"
        short = ("id", "name", "host", "status", "links")
        computed = ("status", "links")
        hidden = ("last_heartbeat",)
        columns = {"last_heartbeat": Service.last_heartbeat_expression()}

    @classmethod
    def add_status(cls, rows: list[Row]) -> None:
        heartbeat_deadline = Service.heartbeat_deadline()
        for row in rows:
            row["status"] = "ACTIVE" if row["last_heartbeat"] >= heartbeat_deadline else "FAILED"

    @classmethod
    def finish(cls, values: Iterable[Sequence[Any]], version: Version, detailed: bool, host: str) -> list[Row]:
        rows = super().finish(values, version, detailed, host)
        without_zone(rows, "last_seen_up")
        return rows


class ServiceView(ResourceView):
    serializer_class = ServiceSerializer
    model = Service
    title = "Service"
    policy = "service"
    identifiers = ("id", "name")
    marker_type = OpenApiTypes.STR
    sort_keys = {
        "name": "name",
        "host": "host",
        "last_seen_up": "last_seen_up",
        "created_at": "created_at",
        "updated_at": "updated_at",
    }

    def lookup(self, identifier: str) -> QuerySet[Any]:
        if identifier.isascii() and identifier.isdigit():
            return self.get_queryset().filter(pk=int(identifier))
        return self.get_queryset().filter(name__iexact=identifier)

    def find_marker(self, marker: str) -> QuerySet[Any]:
        return self.lookup(marker)

    def missing(self, identifier: Any) -> str:
        return f"The service {identifier} cannot be found."
