"""Serializers of goals, strategies, scoring engines, audit templates and audits."""

from collections.abc import Iterable, Sequence
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from audits.models import NAME_LENGTH, Audit
from watcher_site.api.bodies import TIME, UUID_SCHEMA, LenientFlagField
from watcher_site.api.serializers import ResourceSerializer, Row, ZonelessTimeField, links_field, without_zone
from watcher_site.api.versions import Version


class TimesSerializer(ResourceSerializer):
    """The base of resources with the times of creation, change and deletion."""

    created_at = serializers.DateTimeField(read_only=True)
    updated_at = serializers.DateTimeField(read_only=True, allow_null=True)
    deleted_at = serializers.DateTimeField(read_only=True, allow_null=True)


class SpecificationSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    description = serializers.CharField()
    unit = serializers.CharField(allow_null=True)
    schema = serializers.CharField(allow_null=True, help_text="JSON Schema as text")


class GoalSerializer(TimesSerializer):
    uuid = serializers.UUIDField()
    name = serializers.CharField()
    display_name = serializers.CharField()
    efficacy_specification = SpecificationSerializer(many=True)
    links = links_field()

    class Meta:
        collection = "goals"
        short = ("uuid", "name", "display_name", "efficacy_specification", "links")
        computed = ("links",)


class StrategySerializer(ResourceSerializer):
    uuid = serializers.UUIDField()
    name = serializers.CharField()
    display_name = serializers.CharField()
    goal_uuid = serializers.UUIDField()
    goal_name = serializers.CharField()
    links = links_field()
    parameters_spec = serializers.DictField(help_text="JSON Schema of the parameters")

    class Meta:
        collection = "strategies"
        short = ("uuid", "name", "display_name", "goal_uuid", "goal_name", "links")
        columns = {"goal_uuid": "goal__uuid", "goal_name": "goal__name"}
        computed = ("links",)


class RequirementSerializer(serializers.Serializer[Any]):
    """A requirement of a strategy: its data source, metrics, cluster data models, or name."""

    type = serializers.CharField()
    state = serializers.JSONField(help_text="a string, or a list of objects that each map a name to its availability")
    mandatory = serializers.JSONField(help_text="true, false, or an empty string if not applicable")
    comment = serializers.CharField()


class ScoringEngineSerializer(TimesSerializer):
    uuid = serializers.UUIDField()
    name = serializers.CharField()
    description = serializers.CharField()
    links = links_field()
    metainfo = serializers.CharField()

    class Meta:
        collection = "scoring_engines"
        short = ("uuid", "name", "description", "links")
        since = dict.fromkeys(("created_at", "updated_at", "deleted_at"), (1, 8))
        computed = ("links",)


AIMS = {
    "goal_uuid": "goal__uuid",
    "goal_name": "goal__name",
    "strategy_uuid": "strategy__uuid",
    "strategy_name": "strategy__name",
}


class AuditTemplateSerializer(TimesSerializer):
    uuid = serializers.UUIDField(read_only=True)
    name = serializers.CharField(max_length=NAME_LENGTH)
    goal_uuid = serializers.UUIDField(read_only=True)
    goal_name = serializers.CharField(read_only=True)
    strategy_uuid = serializers.UUIDField(read_only=True, allow_null=True)
    strategy_name = serializers.CharField(read_only=True, allow_null=True)
    scope = serializers.ListField(child=serializers.DictField(), required=False)
    links = links_field()
    description = serializers.CharField(max_length=255, required=False, allow_null=True, allow_blank=True)
    default_parameters = serializers.DictField(required=False)

    class Meta:
        collection = "audit_templates"
        short = (
            "uuid",
            "name",
            "goal_uuid",
            "goal_name",
            "strategy_uuid",
            "strategy_name",
            "scope",
            "links",
        )
        since = {"default_parameters": (1, 7)}
        columns = AIMS
        computed = ("links",)


class NewAuditTemplateSerializer(serializers.Serializer[Any]):
    """The body of POST: the goal and the strategy by name or UUID."""

    name = serializers.CharField(max_length=NAME_LENGTH)
    goal = serializers.CharField(max_length=255)
    strategy = serializers.CharField(max_length=255, required=False, allow_null=True)
    description = serializers.CharField(max_length=255, required=False, allow_null=True, allow_blank=True)
    scope = serializers.ListField(child=serializers.DictField(), required=False)
    default_parameters = serializers.DictField(required=False, allow_null=True)

    argument = "audit_template_postdata"
    since = {"default_parameters": (1, 7)}


class AuditSerializer(TimesSerializer):
    uuid = serializers.UUIDField()
    name = serializers.CharField()
    audit_type = serializers.ChoiceField(Audit.Type.choices)
    state = serializers.ChoiceField(Audit.State.choices)
    goal_uuid = serializers.UUIDField(allow_null=True)
    goal_name = serializers.CharField(allow_null=True)
    strategy_uuid = serializers.UUIDField(allow_null=True)
    strategy_name = serializers.CharField(allow_null=True)
    interval = serializers.CharField(allow_null=True)
    scope = serializers.ListField(child=serializers.DictField())
    auto_trigger = serializers.BooleanField()
    next_run_time = ZonelessTimeField(allow_null=True)
    links = links_field()
    parameters = serializers.DictField()
    hostname = serializers.CharField(allow_null=True, help_text="host of the last decision engine of the audit")
    start_time = ZonelessTimeField(allow_null=True)
    end_time = ZonelessTimeField(allow_null=True)
    force = serializers.BooleanField()
    status_message = serializers.CharField(allow_null=True)

    class Meta:
        collection = "audits"
        short = (
            "uuid",
            "name",
            "audit_type",
            "state",
            "goal_uuid",
            "goal_name",
            "strategy_uuid",
            "strategy_name",
            "interval",
            "scope",
            "auto_trigger",
            "next_run_time",
            "links",
        )
        since = {"start_time": (1, 1), "end_time": (1, 1), "force": (1, 2), "status_message": (1, 5)}
        columns = AIMS
        computed = ("links",)

    @classmethod
    def finish(cls, values: Iterable[Sequence[Any]], version: Version, detailed: bool, host: str) -> list[Row]:
        rows = super().finish(values, version, detailed, host)
        without_zone(rows, "next_run_time", "start_time", "end_time")
        return rows


class TextField(serializers.CharField):
    """A text that must be a JSON string. Numbers are refused."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError(f"Value: '{data}'. It must be a string.")
        return super().to_internal_value(data)


@extend_schema_field({"type": "string", "enum": Audit.Type.values})
class AuditTypeField(TextField):
    """The type of an audit, which the creation of audits validates with the messages that clients match."""


@extend_schema_field(TIME)
class TimeField(TextField):
    """A time in ISO 8601 as text, which the creation of audits parses."""


@extend_schema_field(UUID_SCHEMA)
class UuidField(TextField):
    """A UUID as text, which the creation of audits validates with the messages that clients match."""


class NewAuditSerializer(serializers.Serializer[Any]):
    """The body of POST: a template, or a goal and optionally a strategy, by name or UUID."""

    audit_type = AuditTypeField()
    name = TextField(required=False, allow_null=True, allow_blank=True)
    audit_template_uuid = UuidField(required=False, allow_null=True)
    goal = TextField(required=False, allow_null=True)
    strategy = TextField(required=False, allow_null=True)
    parameters = serializers.DictField(required=False, allow_null=True)
    interval = TextField(required=False, allow_null=True)
    auto_trigger = LenientFlagField(until=(1, 8), required=False)
    force = LenientFlagField(until=(1, 8), required=False)
    start_time = TimeField(required=False, allow_null=True, help_text="ISO 8601; UTC if it has no time zone")
    end_time = TimeField(required=False, allow_null=True, help_text="ISO 8601; UTC if it has no time zone")

    argument = "audit_p"
    since = {"start_time": (1, 1), "end_time": (1, 1)}
