"""Serializers of action plans."""

from collections import defaultdict
from typing import Any
from uuid import UUID

from django.db.models import Case, F, OuterRef, Subquery, TextField, Value, When
from django.db.models.functions import Cast, Coalesce
from rest_framework import serializers

from actions.api.serializers import ActionSerializer
from plans.models import ActionPlan, EfficacyIndicator
from watcher_site.api.bodies import WindowField
from watcher_site.api.serializers import ResourceSerializer, Row, links_field
from watcher_site.api.versions import APPROVALS, EXTENDED, Version

SCHEDULE_FIELDS = ("start_at", "zone", "window", "opens_at", "closes_at")
NEW = ("on_failure", "suspended_by", "continues_uuid", "continued_by_uuid", *SCHEDULE_FIELDS)
APPROVAL_FIELDS = ("approved_by", "approved_at")
# The maximum number of actions in one request.
MOST_CHOSEN = 1000


class IndicatorSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    description = serializers.CharField()
    unit = serializers.CharField(allow_null=True)
    value = serializers.FloatField()


class ActionPlanSerializer(ResourceSerializer):
    uuid = serializers.UUIDField()
    state = serializers.ChoiceField(ActionPlan.State.choices)
    audit_uuid = serializers.UUIDField(allow_null=True)
    strategy_uuid = serializers.UUIDField(allow_null=True)
    strategy_name = serializers.CharField(allow_null=True)
    efficacy_indicators = IndicatorSerializer(many=True)
    global_efficacy = IndicatorSerializer(many=True)
    updated_at = serializers.DateTimeField(allow_null=True)
    links = links_field()
    hostname = serializers.CharField(allow_null=True, help_text="host of the last applier of the plan")
    status_message = serializers.CharField(allow_null=True)
    on_failure = serializers.ChoiceField(
        ActionPlan.OnFailure.choices,
        help_text="effect of a failed or cancelled action on the actions that depend on it",
    )
    start_at = serializers.DateTimeField(allow_null=True, help_text="time before which no action of the plan begins")
    zone = serializers.CharField(help_text="time zone of the window")
    window = WindowField(allow_null=True)
    opens_at = serializers.DateTimeField(allow_null=True, help_text="time from which the remaining actions may begin")
    closes_at = serializers.DateTimeField(allow_null=True, help_text="time from which no more actions begin")
    suspended_by = serializers.CharField(allow_null=True, help_text="name of the user who suspended the plan")
    continues_uuid = serializers.UUIDField(
        allow_null=True, help_text="the plan whose failed and cancelled actions this plan repeats"
    )
    continued_by_uuid = serializers.UUIDField(
        allow_null=True, help_text="the plan that repeats the failed and cancelled actions of this plan"
    )
    approved_by = serializers.CharField(
        allow_null=True, help_text="name of the user who approved the start of the plan by other users"
    )
    approved_at = serializers.DateTimeField(allow_null=True, help_text="time of this approval")
    created_at = serializers.DateTimeField()
    deleted_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        collection = "action_plans"
        short = (
            "uuid",
            "state",
            "audit_uuid",
            "strategy_uuid",
            "strategy_name",
            "efficacy_indicators",
            "global_efficacy",
            "updated_at",
            "links",
        )
        since = {"status_message": (1, 5), **dict.fromkeys(NEW, EXTENDED), **dict.fromkeys(APPROVAL_FIELDS, APPROVALS)}
        columns = {
            # The plans of a deleted audit do not refer to it.
            "audit_uuid": Case(When(audit__deleted_at=None, then=F("audit__uuid"))),
            "suspended_by": Case(When(state__in=sorted(ActionPlan.SUSPENDABLE), then=F("suspended_by"))),
            "continues_uuid": Case(When(continues__deleted_at=None, then=F("continues__uuid"))),
            "continued_by_uuid": Subquery(
                ActionPlan.objects.present().filter(continues=OuterRef("pk")).values("uuid")[:1]
            ),
            "window": Coalesce(Cast("window", TextField()), Value("null", TextField())),
            "strategy_uuid": "strategy__uuid",
            "strategy_name": "strategy__name",
        }
        json = ("global_efficacy", "window")
        computed = ("efficacy_indicators", "links")
        hidden = ("id",)

    @classmethod
    def add_efficacy_indicators(cls, rows: list[Row]) -> None:
        indicators = defaultdict(list)
        fields = ("name", "description", "unit", "value")
        found = EfficacyIndicator.objects.filter(action_plan__in=[row["id"] for row in rows])
        for plan, *values in found.values_list("action_plan", *fields):
            indicators[plan].append(dict(zip(fields, values, strict=True)))
        for row in rows:
            row["efficacy_indicators"] = indicators.get(row["id"], [])


class UUIDTextField(serializers.UUIDField):
    """A UUID as text. Numbers, which UUIDField would accept, are refused."""

    def to_internal_value(self, data: Any) -> UUID:
        if not isinstance(data, str):
            self.fail("invalid", value=data)
        uuid: UUID = super().to_internal_value(data)
        return uuid


class ChosenActionsSerializer(serializers.Serializer[Any]):
    """The body of an operation on several actions of a plan, all or none."""

    actions = serializers.ListField(
        child=UUIDTextField(), allow_empty=False, max_length=MOST_CHOSEN, help_text="UUIDs of the actions"
    )

    argument = "actions"
    since: dict[str, Version] = {}


class SkippedActionsSerializer(ChosenActionsSerializer):
    reason = serializers.CharField(required=False, allow_null=True, allow_blank=True)


class ChosenAnswerSerializer(serializers.Serializer[Any]):
    actions = ActionSerializer(many=True)
