"""Request bodies: the attributes of POST, their types and microversions, and the operations of PATCH.

Patches are JSON Patch (RFC 6902) with the restrictions and messages of OpenStack's servers: add, replace and remove.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import jsonpatch
import orjson
from drf_spectacular.drainage import set_override
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from watcher_site.api.errors import NotAcceptableHere, flat
from watcher_site.api.versions import MAXIMUM, Version, used_by
from watcher_site.refusals import Invalid
from watcher_site.windows.maintenance import WEEKDAYS

UUID_SCHEMA = {"type": "string", "format": "uuid"}
TIME = {
    "type": "string",
    "pattern": "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    "(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])?$",
}
"""The JSON Schema of a time in ISO 8601, with or without a time zone."""
FLAG = {"type": "string", "enum": ["true", "false"]}
"""The JSON Schema of a query argument that is true or false."""


class DescribedField(serializers.JSONField):
    """A value that is described by a JSON Schema in the OpenAPI document, and validated by other code."""

    def __init__(self, schema: dict[str, Any], **options: Any) -> None:
        super().__init__(**options)
        described = {**schema, "description": self.help_text} if self.help_text else schema
        set_override(self, "field", openapi_schema(described))


def openapi_schema(schema: Any) -> Any:
    """Return a JSON Schema in the dialect of OpenAPI 3.0: `nullable` for the type null, and no propertyNames."""
    if isinstance(schema, list):
        return [openapi_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    converted = {name: openapi_schema(value) for name, value in schema.items() if name != "propertyNames"}
    if isinstance(converted.get("type"), list):
        kinds = [kind for kind in converted["type"] if kind != "null"]
        converted = {**converted, "type": kinds[0], "nullable": "null" in schema["type"]}
    return converted


class FlagField(serializers.BooleanField):
    """A JSON boolean. Texts such as "no" are refused, not guessed."""

    default_error_messages = {"invalid": "Must be a valid boolean: true or false, not a text or a number."}

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


class LenientFlagField(FlagField):
    """A boolean that may be a text or a number in the microversions in which OpenStack's servers accept these.

    Args:
        until: the first version that accepts only a JSON boolean.
    """

    TEXTS: Mapping[str, bool] = {
        **dict.fromkeys(("1", "t", "true", "on", "y", "yes"), True),
        **dict.fromkeys(("0", "f", "false", "off", "n", "no"), False),
    }

    def __init__(self, until: Version, **options: Any) -> None:
        super().__init__(**options)
        self.until = until

    def to_internal_value(self, data: Any) -> bool:
        is_lenient = self.context.get("version", MAXIMUM) < self.until
        found = self.TEXTS.get(str(data).lower()) if is_lenient and isinstance(data, str | int) else None
        return super().to_internal_value(data) if found is None else found


class IdentifierField(serializers.UUIDField):
    """A UUID as a text. A number, which the base class would convert, is refused."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            self.fail("invalid", value=data)
        return super().to_internal_value(data)


@extend_schema_field(TIME)
class TimeTextField(serializers.CharField):
    """A time in ISO 8601 as text, which other code parses in a time zone."""


class WholeField(serializers.IntegerField):
    """A JSON integer. Texts and booleans are refused, as in `FlagField`."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return data


TIME_OF_DAY = "^([01][0-9]|2[0-3]):[0-5][0-9]$"


class WindowSerializer(serializers.Serializer[Any]):
    """The OpenAPI schema of a window; `watcher_site.windows.wall_clock.read_window` parses windows."""

    opens = serializers.RegexField(TIME_OF_DAY, help_text="start time, such as 22:00, in the time zone of zone")
    closes = serializers.RegexField(TIME_OF_DAY, help_text="end time; on the next day if it is not later than opens")
    weekdays = serializers.ListField(
        child=serializers.ChoiceField(WEEKDAYS),
        required=False,
        allow_null=True,
        allow_empty=False,
        help_text="days on which the window opens; default: every day",
    )
    first_day = serializers.DateField(required=False, allow_null=True, help_text="first day of the window")
    last_day = serializers.DateField(required=False, allow_null=True, help_text="last day on which the window opens")


@extend_schema_field(WindowSerializer(allow_null=True))
class WindowField(serializers.JSONField):
    """A window as JSON. The code that parses it has a message for each error."""


def read_body(request: Request, serializer_class: Any, read_only: Collection[str] = ()) -> dict[str, Any]:
    """Return the validated attributes of a request body.

    The serializer class names the body in messages (``argument``) and the microversions that added attributes
    (``since``).

    Args:
        read_only: the attributes of the resource that cannot be set.

    Raises:
        Invalid: not an object, an unknown or read-only attribute, a missing or wrong value.
        NotAcceptableHere: an attribute of a later version than the request's.
    """
    refuse_later(request, serializer_class)
    return read_attributes(request.data, serializer_class, read_only, used_by(request))


def read_attributes(
    document: Any, serializer_class: Any, read_only: Collection[str] = (), version: Version = MAXIMUM
) -> dict[str, Any]:
    """Return the validated attributes of an object that is a body or a part of one.

    Raises:
        Invalid: an attribute is unknown, read-only, missing or wrong.
    """
    if not isinstance(document, dict):
        raise Invalid(f"Invalid input for field/attribute {serializer_class.argument}. An object is expected.")
    refuse_unknown_fields(document, serializer_class, read_only)
    serializer = serializer_class(data=dict(document), context={"version": version})
    if not serializer.is_valid():
        raise Invalid(describe_field_errors(serializer.errors, document))
    return dict(serializer.validated_data)


def refuse_later(request: Request, serializer_class: Any) -> None:
    """Refuse attributes of a body that a later microversion added, instead of ignoring them.

    Raises:
        NotAcceptableHere: there is such an attribute.
    """
    since = serializer_class.since
    for name in request.data if isinstance(request.data, dict) else ():
        if name in since and used_by(request) < since[name]:
            raise NotAcceptableHere(since[name], name)


def refuse_unknown_fields(document: dict[str, Any], serializer_class: Any, read_only: Collection[str]) -> None:
    for name, value in document.items():
        if name in serializer_class._declared_fields:
            continue
        if name in read_only:
            raise Invalid(f"Invalid input for field/attribute {name}. Value: '{value}'. Cannot set read only field.")
        raise Invalid(f"Unknown attribute for argument {serializer_class.argument}: {name}")


def describe_field_errors(errors: Any, document: dict[str, Any]) -> str:
    missing = [name for name in errors if document.get(name) is None and is_missing(errors[name])]
    if missing:
        return f"Invalid input for field/attribute {missing[0]}. Value: 'None'. Mandatory field missing."
    return flat(errors)


def is_missing(errors: Any) -> bool:
    """Return whether the errors of a field are those of REST framework for a missing value or null."""
    return not isinstance(errors, list) or any(error.code in ("required", "null") for error in errors)


OPERATIONS = ("add", "replace", "remove")
INTERNAL = frozenset({"/created_at", "/id", "/links", "/updated_at", "/deleted_at", "/uuid"})
PATH = re.compile(r"(/[\w-]+)+")

Step = dict[str, Any]


def read_patch(
    document: Any,
    *,
    internal: Collection[str] = (),
    mandatory: Collection[str] = (),
    allowed: Collection[str] | None = None,
) -> list[Step]:
    """Validate a JSON Patch document, and return its operations.

    Args:
        internal: paths that cannot be changed, in addition to ``INTERNAL``.
        mandatory: paths that cannot be removed.
        allowed: the only paths that can be changed; all by default.

    Raises:
        Invalid: the document is not a valid patch; the message names the operation and the rule.
    """
    if not isinstance(document, list):
        raise Invalid("Invalid input for field/attribute patch. A list of JSON Patch operations is expected.")
    for step in document:
        check_form(step)
        path = step["path"]
        if allowed is not None and path not in allowed:
            raise Invalid(f"'{path}' is not an allowed attribute and can not be updated")
        if path in INTERNAL or path in internal:
            raise Invalid(f"'{path}' is an internal attribute and can not be updated")
        if step["op"] == "remove" and path in mandatory:
            raise Invalid(f"'{path}' is a mandatory attribute and can not be removed")
    return document


def check_form(step: Any) -> None:
    if not isinstance(step, dict):
        raise Invalid("Invalid input for field/attribute patch. Each operation must be an object.")
    if unknown := set(step) - {"op", "path", "value"}:
        raise Invalid(f"Unknown attribute for argument patch: {min(unknown)}")
    for name in ("path", "op"):
        if name not in step:
            raise Invalid(f"Invalid input for field/attribute {name}. Value: 'None'. Mandatory field missing.")
    if step["op"] not in OPERATIONS:
        raise Invalid(
            f"Invalid input for field/attribute op. Value: '{step['op']}'. "
            f"Value should be one of: {', '.join(sorted(OPERATIONS))}"
        )
    if not isinstance(step["path"], str) or not PATH.fullmatch(step["path"]):
        raise Invalid(f"Invalid input for field/attribute path. Value: '{step['path']}'. It must be like /name.")
    if step["op"] != "remove" and "value" not in step:
        raise Invalid("'add' and 'replace' operations needs value")


def divide(steps: Iterable[Any], belongs: Callable[[Any], bool]) -> tuple[list[Any], list[Any]]:
    """Return the steps of a patch for which ``belongs`` is true, and the other steps, in their order."""
    chosen: list[Any] = []
    rest: list[Any] = []
    for step in steps:
        (chosen if belongs(step) else rest).append(step)
    return chosen, rest


def apply_patch(attributes: dict[str, Any], patch: list[Step]) -> dict[str, Any]:
    """Return the attributes after all steps of a patch.

    Raises:
        Invalid: a step does not fit the attributes.
    """
    for step in patch:
        root = step["path"].split("/")[1]
        if step["op"] == "add" and root not in attributes:
            raise Invalid(f"Adding a new attribute (/{root}) to the root of the resource is not allowed")
    try:
        changed: dict[str, Any] = jsonpatch.apply_patch(attributes, patch)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError) as problem:
        raise cannot_apply(patch, str(problem)) from problem
    return changed


def cannot_apply(patch: list[Step], reason: str, refusal: type[Invalid] = Invalid) -> Invalid:
    """Return the refusal of a well-formed patch that cannot be applied."""
    return refusal(f"Couldn't apply patch '{orjson.dumps(patch).decode()}'. Reason: {reason}")
