"""The views of goals, strategies, scoring engines, audit templates, audits and webhooks."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from audits.api.serializers import (
    AuditSerializer,
    AuditTemplateSerializer,
    GoalSerializer,
    NewAuditSerializer,
    NewAuditTemplateSerializer,
    RequirementSerializer,
    ScoringEngineSerializer,
    StrategySerializer,
)
from audits.models import Audit, AuditTemplate, Goal, ScoringEngine, Strategy
from audits.operations.audit_templates import change_audit_template, create_audit_template, delete_audit_template
from audits.operations.changes import change_audit, trigger_audit
from audits.operations.creation import create_audit
from audits.operations.strategies import requirements
from watcher_site.api.bodies import apply_patch, read_body, read_patch
from watcher_site.api.errors import NotAcceptableHere
from watcher_site.api.paging import read_uuid
from watcher_site.api.versions import STRICT, used_by
from watcher_site.api.views import NamedLookup, ResourceView
from watcher_site.refusals import Invalid

TIMES = {"created_at": "created_at", "updated_at": "updated_at"}
GOAL = {"goal_uuid": "goal__uuid", "goal_name": "goal__name"}
STRATEGY = {"strategy_uuid": "strategy__uuid", "strategy_name": "strategy__name"}


class GoalFilters:
    """The filters by goal and by strategy, each by name or UUID."""

    def filter_goal(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        return queryset.filter(goal__in=Goal.objects.named(value))

    def filter_strategy(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        return queryset.filter(strategy__in=Strategy.objects.named(value))


class GoalView(NamedLookup, ResourceView):
    serializer_class = GoalSerializer
    model = Goal
    title = "Goal"
    policy = "goal"
    sort_keys = {"uuid": "uuid", "name": "name", "display_name": "display_name", **TIMES}


class StrategyView(NamedLookup, GoalFilters, ResourceView):
    serializer_class = StrategySerializer
    model = Strategy
    title = "Strategy"
    policy = "strategy"
    filters = ["goal"]
    sort_keys = {"uuid": "uuid", "name": "name", "display_name": "display_name", **TIMES, **GOAL}
    permissions_required = {"state": "audits.view_strategy"}
    answers = {"state": (200, RequirementSerializer(many=True))}

    def state(self, request: Request, identifier: str) -> Response:
        """List the requirements of a strategy and whether they are available."""
        strategy = self.get_object(request, identifier)
        return Response(requirements(strategy.name))


class ScoringEngineView(NamedLookup, ResourceView):
    serializer_class = ScoringEngineSerializer
    model = ScoringEngine
    title = "ScoringEngine"
    policy = "scoring_engine"
    sort_keys = {"uuid": "uuid", "name": "name", "description": "description", **TIMES}


class UuidMarker:
    """A mixin for lists whose markers must be UUIDs, although their objects also have names."""

    marker_type = OpenApiTypes.UUID

    def find_marker(self: Any, marker: str) -> QuerySet[Any]:
        return self.get_queryset().filter(uuid=read_uuid(marker, "marker"))


class AuditTemplateView(UuidMarker, NamedLookup, GoalFilters, ResourceView):
    serializer_class = AuditTemplateSerializer
    model = AuditTemplate
    title = "AuditTemplate"
    policy = "audit_template"
    filters = ["goal", "strategy"]
    sort_keys = {"uuid": "uuid", "name": "name", **TIMES, **GOAL, **STRATEGY}
    bodies = {"create": NewAuditTemplateSerializer}
    example_step = {"op": "replace", "path": "/description", "value": "before repairs"}

    def create(self, request: Request) -> Response:
        attributes = read_body(request, self.bodies["create"], AuditTemplateSerializer._declared_fields)
        return self.created(create_audit_template(**attributes))

    def partial_update(self, request: Request, identifier: str) -> Response:
        patch = read_patch(request.data, mandatory=("/name",))
        names = {step["path"].split("/")[1] for step in patch}
        for name, since in AuditTemplateSerializer.option("since", {}).items():
            if name in names and used_by(request) < since:
                raise NotAcceptableHere(since, name)
        template = self.get_object(request, identifier)
        before = {
            "name": template.name,
            "description": template.description,
            "goal": template.goal.name,
            "strategy": template.strategy and template.strategy.name,
            "scope": template.scope,
            "default_parameters": template.default_parameters,
        }
        after = apply_patch(before, patch)
        changes = {name: after.get(name) for name in names}
        if changes:
            change_audit_template(template, changes)
        return Response(self.show(template))

    def destroy(self, request: Request, identifier: str) -> Response:
        delete_audit_template(self.get_object(request, identifier))
        return Response(status=204)


class AuditView(UuidMarker, NamedLookup, GoalFilters, ResourceView):
    serializer_class = AuditSerializer
    model = Audit
    title = "Audit"
    policy = "audit"
    filters = ["goal", "strategy"]
    sort_keys = {"uuid": "uuid", "name": "name", "audit_type": "audit_type", "state": "state"}
    sort_keys |= {**TIMES, **GOAL, **STRATEGY}
    bodies = {"create": NewAuditSerializer}
    history_events_by_state = {"CANCELLED": "audit.cancel", "SUSPENDED": "audit.suspend", "ONGOING": "audit.resume"}
    example_step = {"op": "replace", "path": "/state", "value": "CANCELLED"}

    def create(self, request: Request) -> Response:
        attributes = read_body(request, self.bodies["create"], AuditSerializer._declared_fields)
        return self.created(create_audit(**attributes))

    def partial_update(self, request: Request, identifier: str) -> Response:
        internal = ("/status_message", "/hostname", "/next_run_time")
        patch = read_patch(request.data, internal=internal, mandatory=("/state", "/audit_type", "/goal"))
        names = {step["path"].split("/")[1] for step in patch}
        times = names & {"start_time", "end_time"}
        if times and used_by(request) < (1, 1):
            raise NotAcceptableHere((1, 1), min(times))
        audit = self.get_object(request, identifier)
        change_audit(audit, patch, is_strict=used_by(request) >= STRICT)
        return Response(self.show(audit))

    def destroy(self, request: Request, identifier: str) -> Response:
        self.get_object(request, identifier).remove()
        return Response(status=204)


class WebhookView(NamedLookup, ResourceView):
    model = Audit
    title = "Audit"
    policy = "webhook"
    permissions_required = {"trigger": "audits.trigger_audit"}
    bodies = {"trigger": OpenApiTypes.ANY}
    history_events = {"trigger": "audit.trigger"}
    answers = {"trigger": (202, None)}

    def trigger(self, request: Request, identifier: str) -> Response:
        """Trigger a run of an EVENT audit. The body must be JSON, and is ignored."""
        if not request.headers.get("Content-Length", "0").strip("0"):
            raise Invalid('Missing argument: "body"')
        _ = request.data
        audit: Any = self.get_object(request, identifier)
        trigger_audit(audit)
        return Response(status=202)
