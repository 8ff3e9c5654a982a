"""The versions of the compute API, in Nova's format, for everybody."""

from typing import Any

from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from plans.mounts.compute.versions import MAXIMUM, MINIMUM
from watcher_site.api.mounts import MountedView
from watcher_site.api.resources.discovery import host
from watcher_site.api.versions import format_version


def version(request: Request) -> dict[str, Any]:
    return {
        "id": "v2.1",
        "status": "CURRENT",
        "version": format_version(MAXIMUM),
        "min_version": format_version(MINIMUM),
        "updated": "2013-07-23T11:33:21Z",
        "links": [{"rel": "self", "href": f"{host(request)}/compute/v2.1/"}],
    }


class Versions(MountedView):
    """All versions: there is one, with its microversions. Needs no login."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    def get(self, request: Request) -> Response:
        return Response({"versions": [version(request)]})


class OneVersion(Versions):
    def get(self, request: Request) -> Response:
        media = [{"base": "application/json", "type": "application/vnd.openstack.compute+json;version=2.1"}]
        return Response({"version": version(request) | {"media-types": media}})
