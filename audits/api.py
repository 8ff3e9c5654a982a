"""``/v1/goals``, ``/v1/strategies``, ``/v1/scoring_engines``, ``/v1/audit_templates`` and ``/v1/audits``."""

from typing import Any

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from audits.models import Audit, AuditTemplate, Goal, ScoringEngine, Strategy
from audits.requirements import requirements
from audits.serializers import (
    AuditSerializer,
    AuditTemplateSerializer,
    GoalSerializer,
    ScoringEngineSerializer,
    StrategySerializer,
)
from watcher_site.api.paging import read_uuid
from watcher_site.api.views import NamedLookup, ResourceView

TIMES = {"created_at": "created_at", "updated_at": "updated_at"}
GOAL = {"goal_uuid": "goal__uuid", "goal_name": "goal__name"}
STRATEGY = {"strategy_uuid": "strategy__uuid", "strategy_name": "strategy__name"}


class AimFilters:
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


class StrategyView(NamedLookup, AimFilters, ResourceView):
    serializer_class = StrategySerializer
    model = Strategy
    title = "Strategy"
    policy = "strategy"
    filters = ["goal"]
    sort_keys = {"uuid": "uuid", "name": "name", "display_name": "display_name", **TIMES, **GOAL}
    permissions_required = {"state": "audits.view_strategy"}

    def state(self, request: Request, identifier: str) -> Response:
        """Say what the strategy needs and what of it is there."""
        strategy = self.get_object(request, identifier)
        return Response(requirements(strategy.name))


class ScoringEngineView(NamedLookup, ResourceView):
    serializer_class = ScoringEngineSerializer
    model = ScoringEngine
    title = "ScoringEngine"
    policy = "scoring_engine"
    sort_keys = {"uuid": "uuid", "name": "name", "description": "description", **TIMES}


class UuidMarker:
    """Lists whose markers must be UUIDs, although their objects have names too."""

    def find_marker(self: Any, marker: str) -> QuerySet[Any]:
        return self.get_queryset().filter(uuid=read_uuid(marker, "marker"))


class AuditTemplateView(UuidMarker, NamedLookup, AimFilters, ResourceView):
    serializer_class = AuditTemplateSerializer
    model = AuditTemplate
    title = "AuditTemplate"
    policy = "audit_template"
    filters = ["goal", "strategy"]
    sort_keys = {"uuid": "uuid", "name": "name", **TIMES, **GOAL, **STRATEGY}


class AuditView(UuidMarker, NamedLookup, AimFilters, ResourceView):
    serializer_class = AuditSerializer
    model = Audit
    title = "Audit"
    policy = "audit"
    filters = ["goal", "strategy"]
    sort_keys = {"uuid": "uuid", "name": "name", "audit_type": "audit_type", "state": "state"}
    sort_keys |= {**TIMES, **GOAL, **STRATEGY}
