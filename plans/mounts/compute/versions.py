"""The supported microversions of the compute service, and their headers."""

import re
from functools import cache
from typing import Any, cast

from django.http.request import HttpHeaders
from django.utils.cache import patch_vary_headers
from rest_framework.exceptions import NotAcceptable, ParseError
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.versioning import BaseVersioning

from watcher_site.api.mounts import MountedView
from watcher_site.api.resources.discovery import host
from watcher_site.api.versions import HEADER, HEADER_IN_META, Version, format_version

SERVICE = "compute"
MINIMUM: Version = (2, 1)
MAXIMUM: Version = (2, 84)
# The header of clients that predate the common header of all services.
LEGACY_HEADER = "X-OpenStack-Nova-API-Version"
LEGACY_HEADER_IN_META = HttpHeaders.to_wsgi_name(LEGACY_HEADER)
FORMAT = re.compile(r"([1-9]\d{0,9})\.(0|[1-9]\d{0,9})")
# The first version with each feature.
DELETED_SERVERS: Version = (2, 21)
EMBEDDED_FLAVORS: Version = (2, 47)
EVENTS_FOR_ALL: Version = (2, 51)
PAGES: Version = (2, 58)
HOSTS: Version = (2, 62)
CHANGES_BEFORE: Version = (2, 66)
DETAILS: Version = (2, 84)


class ComputeVersioning(BaseVersioning):
    """Reads the version from `OpenStack-API-Version: compute 2.84` or the older header; by default the lowest."""

    default_version = format_version(MINIMUM)

    def determine_version(  # type: ignore[override]
        self, request: Request, *args: Any, **kwargs: Any
    ) -> Version:
        requested = requested_version(request)
        return MINIMUM if requested is None else parse_version(requested)


def requested_version(request: Request) -> str | None:
    """Return the version that the headers name for this service."""
    for item in request.META.get(HEADER_IN_META, "").split(","):
        service, _, version = item.strip().partition(" ")
        if service == SERVICE:
            return version.strip()
    legacy: str | None = request.META.get(LEGACY_HEADER_IN_META)
    return legacy


def parse_version(requested: str) -> Version:
    """Return the version of a header.

    Raises:
        ParseError: the version is malformed.
        NotAcceptable: the version is not supported.
    """
    if requested == "latest":
        return MAXIMUM
    found = FORMAT.fullmatch(requested)
    if found is None:
        raise ParseError(
            f"API Version String {requested:.40} is of invalid format. Must be of format MajorNum.MinorNum."
        )
    version = int(found[1]), int(found[2])
    if not MINIMUM <= version <= MAXIMUM:
        raise NotAcceptable(
            f"Version {requested} is not supported by the API. "
            f"Minimum is {format_version(MINIMUM)} and maximum is {format_version(MAXIMUM)}."
        )
    return version


@cache
def response_headers(version: Version) -> dict[str, str]:
    return {HEADER: f"{SERVICE} {format_version(version)}", LEGACY_HEADER: format_version(version)}


class ComputeView(MountedView):
    """A view whose responses have headers with the microversion."""

    versioning_class = ComputeVersioning  # type: ignore[assignment]

    @property
    def version(self) -> Version:
        return cast("Version", self.request.version)

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        final = super().finalize_response(request, response, *args, **kwargs)
        if version := getattr(request, "version", None):
            for name, value in response_headers(version).items():
                final[name] = value
        patch_vary_headers(final, [HEADER, LEGACY_HEADER])
        return final


def version_entry(request: Request) -> dict[str, Any]:
    return {
        "id": "v2.1",
        "status": "CURRENT",
        "version": format_version(MAXIMUM),
        "min_version": format_version(MINIMUM),
        "updated": "2013-07-23T11:33:21Z",
        "links": [{"rel": "self", "href": f"{host(request)}/compute/v2.1/"}],
    }


class Versions(MountedView):
    """The only version of the API, with the range of its microversions. Requires no login."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    def get(self, request: Request) -> Response:
        return Response({"versions": [version_entry(request)]})


class OneVersion(Versions):
    def get(self, request: Request) -> Response:
        media = [{"base": "application/json", "type": "application/vnd.openstack.compute+json;version=2.1"}]
        return Response({"version": version_entry(request) | {"media-types": media}})
