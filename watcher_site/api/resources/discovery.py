"""The discovery documents: ``/``, which requires no login, and ``/v1``; and the ``bookmark`` links."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import re_path, resolve
from django.views.decorators.csrf import csrf_exempt
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from watcher_site.api import versions
from watcher_site.api.permissions import LoggedIn
from watcher_site.api.views import VersionedView

COLLECTIONS: dict[str, versions.Version] = {
    "audits": (1, 0),
    "audit_templates": (1, 0),
    "actions": (1, 0),
    "action_plans": (1, 0),
    "scoring_engines": (1, 0),
    "services": (1, 0),
    "data_model": (1, 3),
    "webhooks": (1, 4),
    "servers": (1, 8),
    "stacks": (1, 11),
    "profiles": (1, 12),
    "nodes": (1, 12),
    "policies": (1, 12),
    "policy_types": (1, 12),
    "clusters": (1, 12),
    "exclusions": (1, 13),
    "history": (1, 13),
    "broker": (1, 13),
    "subscriptions": (1, 13),
    "undelivered": (1, 13),
    "tokens": (1, 14),
}


def host(request: Request) -> str:
    return f"{request.scheme}://{request.get_host()}"


class Root(APIView):
    """The versions of the API. Version headers are ignored, and no login is required."""

    versioning_class = None
    authentication_classes = ()
    permission_classes = (AllowAny,)

    def get(self, request: Request) -> Response:
        version = {
            "id": "v1",
            "status": "CURRENT",
            "min_version": versions.format_version(versions.MINIMUM),
            "max_version": versions.format_version(versions.MAXIMUM),
            "links": [{"href": f"{host(request)}/v1/", "rel": "self"}],
        }
        return Response(
            {
                "name": "OpenStack Watcher API",
                "description": "Watcher Site: audits of a cloud, and the action plans that come of them.",
                "versions": [version],
                "default_version": version,
            }
        )


class VersionRoot(VersionedView):
    """The collections of version 1."""

    permission_classes = (LoggedIn,)

    def get(self, request: Request) -> Response:
        base = host(request)
        response: dict[str, Any] = {
            "id": "v1",
            "media_types": [{"base": "application/json", "type": "application/vnd.openstack.watcher.v1+json"}],
            "links": [
                {"href": f"{base}/v1/", "rel": "self"},
                {"href": f"{base}/v1/docs/", "rel": "describedby", "type": "text/html"},
            ],
        }
        return Response(response | collections(versions.used_by(request), base))


def collections(version: versions.Version, base: str) -> dict[str, list[dict[str, str]]]:
    return {
        name: [
            {"href": f"{base}/v1/{name}/", "rel": "self"},
            {"href": f"{base}/{name}/", "rel": "bookmark"},
        ]
        for name, since in COLLECTIONS.items()
        if version >= since
    }


def wants_html(request: HttpRequest) -> bool:
    """Return whether the client accepts HTML explicitly, as browsers do. API clients do not."""
    return "text/html" in accepted(request.headers.get("Accept", ""))


def accepted(header: str) -> Iterable[str]:
    return (item.partition(";")[0].strip() for item in header.split(","))


def root(request: HttpRequest) -> HttpResponseBase:
    """Redirect browsers to the console, and return the versions of the API to API clients."""
    return redirect("home") if wants_html(request) else Root.as_view()(request)


# The pages to which ``bookmark`` links redirect browsers. API clients get the object.
PAGES = {
    "audits": "audits:detail",
    "action_plans": "plans:detail",
    "actions": "actions:detail",
    "clusters": "clusters:detail",
    "nodes": "cluster:member",
    "servers": "cluster:server",
    "profiles": "cluster:profile",
    "policies": "cluster:policy",
}


@csrf_exempt  # The API's own views check CSRF tokens of sessions.
def bookmark(request: HttpRequest, collection: str, uuid: str) -> HttpResponseBase:
    if request.method == "GET" and wants_html(request):
        return redirect(PAGES[collection], uuid=UUID(uuid))
    found = resolve(f"/v1{request.path}")
    response: HttpResponseBase = found.func(request, *found.args, **found.kwargs)
    return response


COLLECTION = f"(?P<collection>{'|'.join(PAGES)})"
DASHED = "(?P<uuid>[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})"
bookmarks = [re_path(f"^{COLLECTION}/{DASHED}/?$", bookmark)]
