"""Mounts, paths under which the site answers as another OpenStack service: the base of their views, and ``/identity``.

``openstack server list`` refuses to begin without an identity endpoint of version 3, although it asks it for nothing
but the ids of projects and users that options name. There are no tokens, users or projects here.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.urls import path
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from watcher_site.api.permissions import LoggedIn
from watcher_site.api.resources.discovery import host
from watcher_site.api.views import NOTHING_BUT_DATA, refuse_nul


class MountedView(APIView):
    """A view of a mount: its errors have the shape that `watcher_site.api.errors` has for its path.

    A service with microversions names its own ``versioning_class``, and tells of the version in its answers.

    ``policy`` is the service's name of the policy that decides on the request, ``policies`` has those of other methods
    than GET, and ``permissions`` the permissions by method, which decide if no policy file does.
    """

    policy: ClassVar[str]
    policies: ClassVar[Mapping[str, str]] = {}
    permissions: ClassVar[Mapping[str, str]]

    versioning_class = None
    permission_classes: Any = (LoggedIn,)
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        refuse_nul(request)
        super().initial(request, *args, **kwargs)

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        final = super().finalize_response(request, response, *args, **kwargs)
        final["Content-Security-Policy"] = NOTHING_BUT_DATA
        return final


def identity_version(request: Request) -> dict[str, Any]:
    return {
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": f"{host(request)}/identity/v3/"}],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}],
    }


class IdentityVersions(MountedView):
    """The list of all versions of the identity service, of which there is one; it needs no login."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    def get(self, request: Request) -> Response:
        return Response({"versions": {"values": [identity_version(request)]}}, 300)


class IdentityVersion(IdentityVersions):
    def get(self, request: Request) -> Response:
        return Response({"version": identity_version(request)})


urlpatterns = [
    path("", IdentityVersions.as_view()),
    path("v3", IdentityVersion.as_view()),
    path("v3/", IdentityVersion.as_view()),
]
