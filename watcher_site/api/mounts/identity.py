"""``/identity``: discovery of an identity service, which some commands of OpenStack's clients require.

``openstack server list`` refuses to begin without an identity endpoint of version 3, although it asks it for nothing
but the ids of projects and users that options name. There are no tokens, users or projects here.
"""

from typing import Any

from django.urls import path
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from watcher_site.api.mounts.views import MountedView
from watcher_site.api.resources.discovery import host


def version(request: Request) -> dict[str, Any]:
    return {
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": f"{host(request)}/identity/v3/"}],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}],
    }


class Versions(MountedView):
    """The list of all versions, of which there is one; it needs no login."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    def get(self, request: Request) -> Response:
        return Response({"versions": {"values": [version(request)]}}, 300)


class OneVersion(Versions):
    def get(self, request: Request) -> Response:
        return Response({"version": version(request)})


urlpatterns = [
    path("", Versions.as_view()),
    path("v3", OneVersion.as_view()),
    path("v3/", OneVersion.as_view()),
]
