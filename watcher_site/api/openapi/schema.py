"""The OpenAPI description of each operation, generated from the declarations of its view and its serializers."""

import re
from typing import Any, Final

from drf_spectacular.extensions import OpenApiAuthenticationExtension, OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse
from rest_framework import serializers

from watcher_site.api import versions
from watcher_site.api.bodies import OPERATIONS, PATH, UUID_SCHEMA, LenientFlagField
from watcher_site.api.paging import Offer
from watcher_site.api.serializers import ResourceSerializer

Description = dict[str, Any]

SUMMARIES = {
    "short_list": "List {plural}.",
    "detailed_list": "List {plural} with all fields.",
    "retrieve": "Show {singular}.",
    "create": "Create {singular}.",
    "partial_update": "Change {singular}.",
    "destroy": "Delete {singular}.",
}
HEADER: Final = "header"
LISTS = ("short_list", "detailed_list")
REQUEST_ID = OpenApiParameter("request_id", str, OpenApiParameter.PATH, description="request id of the operation")
REFUSALS = {
    400: "The request cannot be parsed, or contains invalid values.",
    401: "The request is not authenticated.",
    403: "The user does not have permission for the request.",
    404: "The object, or an object that the request names, does not exist.",
    406: "The microversion is not supported, or does not have this field or resource.",
    409: "The state of the object does not allow the request, or the name is already in use.",
    411: "The body has no Content-Length.",
    413: "The body is too large.",
    429: "There were too many failed logins from this address; Retry-After contains the waiting time.",
    503: "Too many passwords are being checked, or the database fails; Retry-After contains the waiting time.",
}
HEADERS = {
    versions.HEADER: "the microversion of the response",
    versions.MINIMUM_HEADER: "the oldest supported microversion",
    versions.MAXIMUM_HEADER: "the newest supported microversion",
    "x-openstack-request-id": "id of the request in the log",
}


class ErrorSerializer(serializers.Serializer[Any]):
    error_message = serializers.CharField(
        help_text="JSON as text: faultcode (Client or Server), faultstring (the message) and debuginfo"
    )


class UnauthorizedErrorSerializer(serializers.Serializer[Any]):
    code = serializers.IntegerField()
    title = serializers.CharField()
    message = serializers.CharField()


class UnauthorizedSerializer(serializers.Serializer[Any]):
    error = UnauthorizedErrorSerializer()


class PatchStepSerializer(serializers.Serializer[Any]):
    op = serializers.ChoiceField(OPERATIONS)
    path = serializers.RegexField(f"^{PATH.pattern}$", help_text="path of the attribute, such as /name")
    value = serializers.JSONField(required=False, allow_null=True, help_text="required unless op is remove")

    schema_rules = {"anyOf": [{"properties": {"op": {"enum": ["remove"]}}}, {"required": ["value"]}]}


class TokenScheme(OpenApiAuthenticationExtension):
    target_class = "watcher_site.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> Description:
        return {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}


class BasicScheme(OpenApiAuthenticationExtension):
    target_class = "watcher_site.api.authentication.BasicAuthentication"
    name = "basic"

    def get_security_definition(self, auto_schema: AutoSchema) -> Description:
        return {"type": "http", "scheme": "basic"}


class LenientFlagExtension(OpenApiSerializerFieldExtension):
    """The schema of a `LenientFlagField` in the version of the document."""

    target_class = "watcher_site.api.bodies.LenientFlagField"

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> Description:
        field: LenientFlagField = self.target
        if auto_schema.version >= field.until:
            return {"type": "boolean"}
        # Patterns in JSON Schema cannot ignore case.
        texts = [
            "".join(f"[{sign}{sign.upper()}]" if sign.isalpha() else sign for sign in text) for text in field.TEXTS
        ]
        text = {"type": "string", "pattern": f"^({'|'.join(texts)})$"}
        return {"oneOf": [{"type": "boolean"}, {"type": "integer", "enum": [0, 1]}, text]}


class ResourceSchema(AutoSchema):
    """One operation of a `ResourceView` in one microversion (``view.documented_version``)."""

    view: Any

    @property
    def version(self) -> versions.Version:
        found: versions.Version = self.view.documented_version
        return found

    def is_excluded(self) -> bool:
        return self.version < max(self.view.since, self.view.actions_since.get(self.view.action, versions.MINIMUM))

    # Texts

    def get_operation_id(self) -> str:
        return self.view.policy_name().replace(":", "_")

    def get_tags(self) -> list[str]:
        return [self.collection]

    @property
    def collection(self) -> str:
        return self.path.split("/")[2]

    def get_summary(self) -> str:
        summary = self.view_docstring().partition("\n")[0]
        return summary or SUMMARIES[self.view.action].format(**nouns(self.view.title))

    def get_description(self) -> str:  # type: ignore[override]
        return self.view_docstring().partition("\n")[2].strip()

    def view_docstring(self) -> str:
        return (getattr(self.view, self.view.action).__doc__ or "").strip()

    # Requests

    def map_parsers(self) -> list[str]:
        return ["application/json"]

    def get_override_parameters(self) -> list[Any]:
        return [
            *self.path_parameters(),
            *self.header_parameters(),
            *self.query_parameters(),
            *document_response_headers(),
        ]

    def path_parameters(self) -> list[OpenApiParameter]:
        since = self.view.identifiers_since
        identifiers = [name for name in self.view.identifiers if self.version >= since.get(name, versions.MINIMUM)]
        kind = OpenApiTypes.UUID if identifiers == ["uuid"] else OpenApiTypes.STR
        description = " or ".join(identifiers)
        return [
            REQUEST_ID
            if name == REQUEST_ID.name
            else OpenApiParameter(name, kind, OpenApiParameter.PATH, description=description)
            for name in re.findall(r"\{(\w+)\}", self.path)
        ]

    def header_parameters(self) -> list[OpenApiParameter]:
        requested = f"{versions.SERVICE} {versions.format_version(self.version)}"
        needed = self.version > versions.MINIMUM
        version: Description = {"enum": [requested], "default": requested, "required": needed}
        return [
            OpenApiParameter(versions.HEADER, str, HEADER, description="the microversion of this document", **version),
            OpenApiParameter(
                "X-Show-Deleted", str, HEADER, description="true includes deleted objects; other values are ignored"
            ),
        ]

    def query_parameters(self) -> list[OpenApiParameter]:
        if self.view.action not in LISTS:
            return list(self.view.arguments.get(self.view.action, []))
        offer = self.view.offer(self.version)
        declared: list[OpenApiParameter] = self.view.query_parameters_at(self.version)
        return declared or [*self.paging_parameters(offer), *self.filter_parameters(offer)]

    def paging_parameters(self, offer: Offer) -> list[OpenApiParameter]:
        keys = "list of key[:asc|:desc] with the keys of sort_key; replaces sort_key and sort_dir"
        return [
            OpenApiParameter("limit", {"type": "integer", "minimum": 1}, description="maximum number of entries"),
            OpenApiParameter("marker", self.view.marker_type, description="last object of the previous page"),
            OpenApiParameter("sort_key", str, enum=list(offer.sort_keys), default="id"),
            OpenApiParameter("sort_dir", str, enum=["asc", "desc"], default=offer.direction),
            *([OpenApiParameter("sort", str, description=keys)] if offer.several_keys else []),
        ]

    def filter_parameters(self, offer: Offer) -> list[OpenApiParameter]:
        schemas = {name: UUID_SCHEMA for name in offer.filters if name.endswith("_uuid")}
        schemas |= self.view.filter_schemas
        return [
            OpenApiParameter(
                name,
                OpenApiTypes.STR if name in offer.repeatable else schemas.get(name, OpenApiTypes.STR),
                enum=schemas.get(name, {}).get("enum") if name in offer.repeatable else None,
                many=name in offer.repeatable,
            )
            for name in offer.filters
        ]

    def get_request_serializer(self) -> Any:
        if self.view.action == "partial_update":
            return PatchStepSerializer(many=True)
        if self.version < self.view.bodies_since.get(self.view.action, versions.MINIMUM):
            return None
        return self.view.bodies.get(self.view.action)

    def _get_request_body(self, direction: Any = "request") -> Description | None:
        body: Description | None = super()._get_request_body(direction)
        serializer = self.get_request_serializer()
        # drf-spectacular treats bodies of any type, and those of PATCH, as optional.
        if body and (isinstance(serializer, OpenApiTypes) or requires_fields(serializer)):
            body["required"] = True
        return body

    def get_examples(self) -> list[OpenApiExample]:
        if self.view.action != "partial_update":
            return []
        return [OpenApiExample("For example", value=self.view.example_step, request_only=True)]

    # Responses

    def get_response_serializers(self) -> Any:
        status, response = self.success()
        codes = filter(self.refuses, REFUSALS)
        refusals = {code: OpenApiResponse(error(code), REFUSALS[code]) for code in codes}
        media_types = self.view.media_types.get(self.view.action)
        keys: list[Any] = [(status, media_type) for media_type in media_types] if media_types else [status]
        return {key: OpenApiResponse(response, "The request succeeded.") for key in keys} | refusals

    def success(self) -> tuple[int, Any]:
        action = self.view.action
        answers = self.view.answers_at(self.version)
        if action in answers:
            status, response = answers[action]
            return status, response
        if action in LISTS:
            return 200, self.envelope(detailed=action == "detailed_list")
        if action == "destroy":
            return 204, None
        return 201 if action == "create" else 200, self.resource(detailed=True)

    def resource(self, detailed: bool) -> ResourceSerializer:
        serializer_class: type[ResourceSerializer] = self.view.serializer_class
        return serializer_class(context={"version": self.version, "detailed": detailed})

    def envelope(self, detailed: bool) -> Description:
        item = self.resolve_serializer(self.resource(detailed), "response").ref
        link = {"type": "string", "format": "uri", "description": "URL of the next page, if this page is full"}
        return {
            "type": "object",
            "properties": {self.collection: {"type": "array", "items": item}, "next": link},
            "required": [self.collection],
            "additionalProperties": False,
        }

    def refuses(self, code: int) -> bool:
        if code == 404:
            has_marker = self.view.action in (*LISTS, *self.view.arguments)
            return "{identifier}" in self.path or has_marker or self.view.action == "create"
        if code == 409:
            return self.method != "GET" or self.view.action in self.view.judging
        return code not in (411, 413) or self.get_request_serializer() is not None

    def get_serializer_name(self, serializer: Any, direction: Any) -> str:
        name = super().get_serializer_name(serializer, direction).removesuffix("Serializer")
        short = isinstance(serializer, ResourceSerializer) and not serializer.context.get("detailed", True)
        return f"{name}InShort" if short else name

    def _postprocess_serializer_schema(self, schema: Description, serializer: Any, direction: Any) -> Description:
        schema = super()._postprocess_serializer_schema(schema, serializer, direction)
        schema.pop("description", None)
        if "oneOf" in schema:
            return schema
        schema["additionalProperties"] = False
        if direction == "request":
            schema |= getattr(serializer, "schema_rules", {})
            for name, field in getattr(serializer, "fields", {}).items():
                describe_limits(schema["properties"][name], field)
        if isinstance(serializer, ResourceSerializer):
            schema["required"] = list(schema["properties"])
        for name, since in getattr(serializer, "since", {}).items():
            if self.version < since:
                del schema["properties"][name]
        for described in schema["properties"].values():
            described.pop("x-spec-enum-id", None)
        return schema


def nouns(title: str) -> dict[str, str]:
    """Return the singular with its article, and the plural, of a title in camel case, such as AuditTemplate."""
    noun = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", title).lower()
    article = "an" if noun[0] in "aeiou" else "a"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return {"singular": f"{article} {noun}", "plural": plural}


def requires_fields(serializer: Any) -> bool:
    """Return whether a serializer, or serializer class, has a required field or a rule that an empty object breaks."""
    fields = serializer().fields if isinstance(serializer, type) else getattr(serializer, "fields", {})
    return hasattr(serializer, "schema_rules") or any(field.required for field in fields.values())


def describe_limits(described: Description, field: serializers.Field) -> None:
    """Add the rules of a serializer field that drf-spectacular omits to the schema of the field."""
    if isinstance(field, serializers.CharField) and not field.allow_blank and "pattern" not in described:
        described["pattern"] = r"\S"
    if isinstance(field, serializers.ListField):
        if not field.allow_empty:
            described["minItems"] = 1
        if "items" in described and field.child is not None:
            describe_limits(described["items"], field.child)


def document_response_headers() -> list[OpenApiParameter]:
    everywhere = [
        OpenApiParameter(name, str, HEADER, response=True, description=text) for name, text in HEADERS.items()
    ]
    created = OpenApiParameter(
        "Location",
        OpenApiTypes.URI,
        HEADER,
        response=[201, 202],
        description="URL of the new object, or of the action that performs the operation",
    )
    refused = OpenApiParameter(
        "WWW-Authenticate", str, HEADER, response=[401], description="supported methods of authentication"
    )
    return [*everywhere, created, refused]


def error(code: int) -> type[serializers.Serializer[Any]]:
    return UnauthorizedSerializer if code == 401 else ErrorSerializer
