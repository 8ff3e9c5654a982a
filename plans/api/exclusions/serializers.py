"""Exclusions, as the API shows them."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from actions.exclusions.rules import Rule
from actions.exclusions.targets import KINDS
from actions.models.exclusions import NAME_LENGTH, TEXT_LENGTH, Exclusion
from watcher_site.api.bodies import FlagField, TimeTextField, WindowField
from watcher_site.api.serializers import ResourceSerializer, Row, links_field
from watcher_site.api.versions import Version

SAYS = ("action_types", "targets", "window", "zone", "expires_at", "enabled")


class TargetsSerializer(serializers.Serializer[Any]):
    """The schema of targets in the OpenAPI document; `actions.exclusions.records` parses targets."""

    vars().update(
        {
            kind: serializers.ListField(child=serializers.CharField(), required=False, help_text=f"each {form}")
            for kind, (_, form) in KINDS.items()
        }
    )


@extend_schema_field(TargetsSerializer(allow_null=True))
class TargetsField(serializers.JSONField):
    """Targets as they were sent: the code that reads them has a message for each mistake."""


class ExclusionSerializer(ResourceSerializer):
    uuid = serializers.UUIDField()
    name = serializers.CharField()
    owner = serializers.CharField(help_text="who answers for it: a person or a team")
    links = links_field()
    reason = serializers.CharField(help_text="why; the actions that it excludes tell it")
    action_types = serializers.ListField(child=serializers.CharField(), help_text="none: all of them")
    targets = TargetsSerializer(help_text="identifiers by kind; what touches one of each kind is excluded")
    window = WindowField(allow_null=True, help_text="the hours in which it is in force; null: all")
    zone = serializers.CharField(help_text="of the window")
    expires_at = serializers.DateTimeField(allow_null=True, help_text="from when on it is no longer in force")
    enabled = serializers.BooleanField(help_text="whether it is heeded at all")
    is_in_force = serializers.BooleanField(help_text="whether it excludes what begins now")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(allow_null=True)
    deleted_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        collection = "exclusions"
        short = ("uuid", "name", "owner", "enabled", "links")
        computed = ("is_in_force", "links")

    @classmethod
    def add_is_in_force(cls, rows: list[Row]) -> None:
        now = timezone.now()
        for row in rows:
            rule = Rule.of(Exclusion(uuid=row["uuid"], **{name: row[name] for name in SAYS}))
            row["is_in_force"] = row["deleted_at"] is None and rule.is_in_force(now)


class NewExclusionSerializer(serializers.Serializer[Any]):
    """The body of POST: `actions.exclusions.records` says of each field what is wrong with it."""

    name = serializers.CharField(max_length=NAME_LENGTH)
    owner = serializers.CharField(
        max_length=TEXT_LENGTH, required=False, allow_null=True, help_text="who sends it, if left out"
    )
    reason = serializers.CharField(max_length=TEXT_LENGTH, required=False, allow_null=True, allow_blank=True)
    action_types = serializers.ListField(child=serializers.CharField(), required=False, allow_null=True)
    targets = TargetsField(required=False, allow_null=True)
    window = WindowField(required=False, allow_null=True)
    zone = serializers.CharField(required=False, allow_null=True, help_text="such as Europe/Berlin; UTC, if left out")
    expires_at = TimeTextField(
        required=False, allow_null=True, help_text="in ISO 8601, by the clock of the zone where it names none"
    )
    enabled = FlagField(required=False, help_text="whether it is heeded at all; true, if left out")

    argument = "exclusion"
    since: dict[str, Version] = {}
