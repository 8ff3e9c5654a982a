"""``/v1/profiles``, and what there is to read of ``/v1/nodes``."""

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.api.profile_serializers import NewProfileSerializer, ProfileSerializer
from cluster.models import Profile
from cluster.operations.profiles import CHANGEABLE, change_profile, create_profile, delete_profile
from watcher_site.api.bodies import apply_patch, read_body, read_patch
from watcher_site.api.views import NamedLookup, ResourceView

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
