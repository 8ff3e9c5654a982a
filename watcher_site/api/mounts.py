"""The base of views of mounts, under which the site implements APIs of other OpenStack services, and ``/identity``.

``openstack server list`` requires an identity endpoint of version 3, although it only uses it to look up ids of
projects and users that options name. There are no tokens, users or projects here.
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
from watcher_site.api.views import DATA_ONLY_POLICY, refuse_nul


class MountedView(APIView):
    """A view of a mount, with errors in the format of its service (`watcher_site.api.errors`).

    A service with microversions sets its own ``versioning_class``, and adds the version to its responses.

    ``policy`` is the service's name of the policy that decides on the request, ``policies`` has those of methods other
    than GET, and ``permissions`` has the permission of each method, which decides without a policy file.
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
        final["Content-Security-Policy"] = DATA_ONLY_POLICY
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
    """The list of versions of the identity service, which contains one version; it requires no login."""

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
