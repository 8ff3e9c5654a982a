"""The OpenAPI documents, one for each microversion, and the page that shows them with Swagger UI."""

import re
from functools import cache
from typing import Any

from django.contrib.auth.mixins import LoginRequiredMixin
from django.views.generic import TemplateView
from drf_spectacular.generators import EndpointEnumerator, SchemaGenerator
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from watcher_site.api import versions
from watcher_site.api.permissions import LoggedIn
from watcher_site.refusals import Invalid

NAMES = {versions.format_version(version): version for version in versions.HISTORY}
NEWEST = versions.format_version(versions.MAXIMUM)


class Paths(EndpointEnumerator):
    """Enumerates the documented form of each path, without accepted variants such as a trailing slash."""

    def get_path_from_regex(self, path_regex: str) -> str:
        path = path_regex.removeprefix("^(?:v1/)?").removesuffix("/?$")
        return "/v1/" + re.sub(r"\(\?P<(\w+)>.*?\)(?:\(\?:\\\.json\)\?)?(?=/|$)", r"{\1}", path)


def require_version(version: str) -> str:
    """Return the version. Raises: `Invalid`: it is not supported."""
    if version not in NAMES:
        raise Invalid(f"Invalid input for field/attribute version. It must be one of {', '.join(NAMES)}.")
    return version


class DocumentGenerator(SchemaGenerator):
    """Generates the document of the microversion ``api_version``, by default the newest."""

    endpoint_inspector_cls = Paths

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["urlconf"] = kwargs.get("urlconf") or "watcher_site.api.urls"
        kwargs["api_version"] = require_version(kwargs.get("api_version") or NEWEST)
        super().__init__(*args, **kwargs)

    def create_view(self, callback: Any, method: str, request: Any = None) -> Any:
        view = super().create_view(callback, method, request)
        # The generator supports versions in paths and media types, but not in headers.
        view.versioning_class = None
        view.documented_version = NAMES[self.api_version]
        return view


@cache
def document(version: str) -> Any:
    return DocumentGenerator(api_version=version).get_schema(public=True)


class DocumentView(APIView):
    """The OpenAPI document of one microversion: ``/v1/openapi.json?version=1.5``."""

    permission_classes = (LoggedIn,)
    versioning_class = None

    def get(self, request: Request) -> Response:
        return Response(document(require_version(request.query_params.get("version", NEWEST))))


class DocumentationPage(LoginRequiredMixin, TemplateView):
    """Swagger UI, with a choice of the microversion."""

    template_name = "api_documentation.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        requested = self.request.GET.get("version")
        chosen = requested if requested in NAMES else NEWEST
        return super().get_context_data(versions=list(NAMES), chosen=chosen, **kwargs)
