"""``/v1/profiles``, and what there is to read of ``/v1/nodes``."""

from typing import Any

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.lookup import only_one
from cluster.models import Node, Profile
from cluster.profiles import CHANGEABLE, change_profile, create_profile, delete_profile
from cluster.serializers import NewProfileSerializer, NodeSerializer, ProfileSerializer
from watcher_site.api.bodies import read_body
from watcher_site.api.patches import apply_patch, read_patch
from watcher_site.api.views import NamedLookup, ResourceView
from watcher_site.refusals import Invalid

# The version that brought clusters, and what they are made of.
CLUSTERS = (1, 12)


class ProfileView(NamedLookup, ResourceView):
    since = CLUSTERS
    serializer_class = ProfileSerializer
    model = Profile
    title = "Profile"
    policy = "profile"
    identifiers = ("uuid", "name")
    filters = ["name"]
    sort_keys = {"uuid": "uuid", "name": "name", "created_at": "created_at", "updated_at": "updated_at"}
    bodies = {"create": NewProfileSerializer}
    example_step = {"op": "replace", "path": "/name", "value": "small web servers"}

    def filter_name(self, queryset: QuerySet[Profile], value: str) -> QuerySet[Profile]:
        return queryset.filter(name__iexact=value)

    def create(self, request: Request) -> Response:
        attributes = read_body(request, NewProfileSerializer, ProfileSerializer._declared_fields)
        return self.created(create_profile(**attributes))

    def partial_update(self, request: Request, identifier: str) -> Response:
        """Change the name or the metadata: what servers are created from stays."""
        patch = read_patch(request.data, internal=("/type", "/spec"), mandatory=("/name",))
        profile = self.get_object(request, identifier)
        before = {name: getattr(profile, name) for name in CHANGEABLE}
        after = apply_patch(before, patch)
        if changes := {name: after.get(name) for name in CHANGEABLE if after.get(name) != before[name]}:
            change_profile(profile, changes)
        return Response(self.show(profile))

    def destroy(self, request: Request, identifier: str) -> Response:
        delete_profile(self.get_object(request, identifier))
        return Response(status=204)


class NodeReading(ResourceView):
    """Lists of nodes, and single ones. What is done to them makes action plans, and has its place with these."""

    since = CLUSTERS
    serializer_class = NodeSerializer
    model = Node
    title = "Node"
    policy = "node"
    identifiers = ("uuid", "name")
    arguments_since = {"sort": CLUSTERS}
    filters = ["name", "status", "profile", "cluster"]
    repeatable = frozenset({"status"})
    sort_keys = {
        "uuid": "uuid",
        "name": "name",
        "status": "status",
        "created_at": "created_at",
        "updated_at": "updated_at",
    }

    filter_schemas = {"status": {"enum": Node.Status.values}}

    def lookup(self, identifier: str) -> QuerySet[Any]:
        return only_one(self.get_queryset(), identifier)

    def filter_name(self, queryset: QuerySet[Node], value: str) -> QuerySet[Node]:
        return queryset.filter(name__iexact=value)

    def filter_status(self, queryset: QuerySet[Node], value: list[str]) -> QuerySet[Node]:
        if unknown := [status for status in value if status not in Node.Status.values]:
            raise Invalid(f"Invalid input for field/attribute status. Value: '{unknown[0]}'. There is no such status.")
        return queryset.filter(status__in=value)

    def filter_profile(self, queryset: Any, value: str) -> QuerySet[Node]:
        found: QuerySet[Node] = queryset.of_profile(value)
        return found

    def filter_cluster(self, queryset: Any, value: str) -> QuerySet[Node]:
        found: QuerySet[Node] = queryset.of_cluster(value)
        return found
