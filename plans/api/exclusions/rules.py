"""``/v1/exclusions``: rules that keep actions from being executed."""

from typing import Any

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from actions.api.serializers import EXCLUSIONS
from actions.exclusions.records import WRITABLE, attributes_of, change_exclusion, create_exclusion, delete_exclusion
from actions.models.exclusions import Exclusion
from plans.api.exclusions.serializers import ExclusionSerializer, NewExclusionSerializer
from watcher_site.api.bodies import FLAG, apply_patch, read_body, read_patch
from watcher_site.api.views import NamedLookup, ResourceView
from watcher_site.refusals import Invalid

SWITCH = {"true": True, "false": False}


class ExclusionView(NamedLookup, ResourceView):
    since = EXCLUSIONS
    serializer_class = ExclusionSerializer
    model = Exclusion
    title = "Exclusion"
    policy = "exclusion"
    identifiers = ("uuid", "name")
    filters = ["name", "owner", "enabled"]
    filter_schemas = {"enabled": FLAG}
    sort_keys = {
        "uuid": "uuid",
        "name": "name",
        "owner": "owner",
        "expires_at": "expires_at",
        "enabled": "enabled",
        "created_at": "created_at",
        "updated_at": "updated_at",
    }
    bodies: dict[str, Any] = {"create": NewExclusionSerializer}
    example_step = {"op": "replace", "path": "/expires_at", "value": "2999-12-31T18:00:00Z"}

    def filter_name(self, queryset: QuerySet[Exclusion], value: str) -> QuerySet[Exclusion]:
        return queryset.filter(name__iexact=value)

    def filter_owner(self, queryset: QuerySet[Exclusion], value: str) -> QuerySet[Exclusion]:
        return queryset.filter(owner__iexact=value)

    def filter_enabled(self, queryset: QuerySet[Exclusion], value: str) -> QuerySet[Exclusion]:
        if value.lower() not in SWITCH:
            raise Invalid(f"enabled: must be true or false, not {value}.")
        return queryset.filter(enabled=SWITCH[value.lower()])

    def create(self, request: Request) -> Response:
        """Make a rule: from now on, actions that it matches are not begun."""
        attributes = read_body(request, NewExclusionSerializer, ExclusionSerializer._declared_fields)
        return self.created(create_exclusion(attributes, request.user.get_username()))

    def partial_update(self, request: Request, identifier: str) -> Response:
        """Change what a rule says: that holds for all that has not begun yet."""
        patch = read_patch(request.data, internal=("/is_in_force",), mandatory=("/name", "/enabled"))
        exclusion = self.get_object(request, identifier)
        before = attributes_of(exclusion)
        after = apply_patch(before, patch)
        if changes := {name: after.get(name) for name in WRITABLE if after.get(name) != before[name]}:
            change_exclusion(exclusion, changes, request.user.get_username())
        return Response(self.show(exclusion))

    def destroy(self, request: Request, identifier: str) -> Response:
        """Delete a rule. What it skipped can be restored, while nothing of its plan has begun."""
        delete_exclusion(self.get_object(request, identifier))
        return Response(status=204)
