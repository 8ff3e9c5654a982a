"""Validation of users' input: names, and JSON Schema with one-line descriptions of violations."""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any
from unicodedata import category
from uuid import UUID

import jsonschema_rs
from django.utils.translation import gettext_noop as _
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match

from watcher_site.database.text import UNSTORABLE
from watcher_site.messages import StoredMessage, cut
from watcher_site.refusals import Invalid

__all__ = ["Draft202012Validator", "compile_check", "describe_violation", "find_violation", "with_defaults"]

INVISIBLE_CHARACTER = StoredMessage(
    _("%(field)s: must not contain control or format characters, but contains %(character)s.")
)
RESERVED_NAME = StoredMessage(_("name: must not contain a slash, end in .json, or be one of %(names)s."))
NAME_IS_UUID = StoredMessage(_("name: must not be a UUID."))
# The messages of jsonschema.
ADDITIONAL_PROPERTY = StoredMessage(_("Additional properties are not allowed (%(names)s was unexpected)"))
ADDITIONAL_PROPERTIES = StoredMessage(_("Additional properties are not allowed (%(names)s were unexpected)"))
REQUIRED_PROPERTY = StoredMessage(_("'%(name)s' is a required property"))
DEPENDENT_PROPERTY = StoredMessage(_("'%(name)s' is a dependency of '%(other)s'"))
BELOW_MINIMUM = StoredMessage(_("%(value)s is less than the minimum of %(minimum)s"))
ABOVE_MAXIMUM = StoredMessage(_("%(value)s is greater than the maximum of %(maximum)s"))
AT_MINIMUM = StoredMessage(_("%(value)s is less than or equal to the minimum of %(minimum)s"))
AT_MAXIMUM = StoredMessage(_("%(value)s is greater than or equal to the maximum of %(maximum)s"))
NO_MULTIPLE = StoredMessage(_("%(value)s is not a multiple of %(factor)s"))
OTHER_VALUE = StoredMessage(_("%(value)s was expected"))
OTHER_VALUES = StoredMessage(_("%(value)s is not one of [%(values)s]"))
OTHER_TYPE = StoredMessage(_("%(value)s is not of type %(types)s"))
EMPTY_VALUE = StoredMessage(_("%(value)s should be non-empty"))
TOO_SHORT = StoredMessage(_("%(value)s is too short"))
TOO_LONG = StoredMessage(_("%(value)s is too long"))
TOO_FEW_PROPERTIES = StoredMessage(_("%(value)s does not have enough properties"))
TOO_MANY_PROPERTIES = StoredMessage(_("%(value)s has too many properties"))
REPEATED_ELEMENTS = StoredMessage(_("%(value)s has non-unique elements"))
OTHER_PATTERN = StoredMessage(_("%(value)s does not match '%(pattern)s'"))
OTHER_FORMAT = StoredMessage(_("%(value)s is not a '%(format)s'"))
NO_SCHEMA_MATCHES = StoredMessage(_("%(value)s is not valid under any of the given schemas"))


def compile_check(schema: Mapping[str, Any]) -> Callable[[Any], bool]:
    """Return a fast check of JSON values, which returns true only for values that a schema allows.

    For other values, `find_violation` decides and describes the violation. A schema that cannot be compiled, such as
    one with a regular expression in Python's syntax, leaves all values to it.
    """
    try:
        return jsonschema_rs.Draft202012Validator(dict(schema)).is_valid
    except (ValueError, TypeError):
        return lambda value: False


def find_violation(validator: Draft202012Validator, value: Any) -> str | None:
    """Return the violated rule with its field, as in ``duration: -1 is less than the minimum of 0``."""
    error = best_match(validator.iter_errors(value))
    return describe_violation(error) if error else None


def describe_violation(error: ValidationError) -> str:
    """Return the field and the rule of a violation. Large values are truncated."""
    path = ".".join(str(step) for step in error.absolute_path)
    return cut(f"{path}: {error.message}" if path else error.message)


def with_defaults(schema: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with the schema's defaults for missing properties, including those of nested objects."""
    properties = schema.get("properties", {})
    filled = {name: rule["default"] for name, rule in properties.items() if "default" in rule} | dict(values)
    for name, rule in properties.items():
        if "properties" in rule and isinstance(filled.get(name), Mapping):
            filled[name] = with_defaults(rule, filled[name])
    return filled


# Control characters, line separators, and format characters, such as those that change the text direction.
INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp"})

# No column of names is longer, and SQLite refuses to search for much longer texts.
LONGEST_NAME = 255
# The length of the columns of ids of requests.
REQUEST_ID_LENGTH = 64


def find_named(records: Any, identifier: str) -> Any:
    """Filter a queryset by UUID, or by name ignoring case."""
    if UNSTORABLE.search(identifier) or len(identifier) > LONGEST_NAME:
        return records.none()
    try:
        return records.filter(uuid=UUID(identifier))
    except ValueError:
        return records.filter(name__iexact=identifier)


def require_visible(field: str, text: str) -> None:
    """Raise `Invalid` with the field for a text with invisible characters."""
    for character in text:
        if category(character) in INVISIBLE:
            raise Invalid(INVISIBLE_CHARACTER.fill(field=field, character=f"U+{ord(character):04X}"))


def require_addressable_name(name: str, reserved: Collection[str]) -> None:
    """Raise `Invalid` for a name that cannot be used in a path, because it would be parsed differently."""
    if "/" in name or name.endswith(".json") or name.lower() in reserved:
        raise Invalid(RESERVED_NAME.fill(names=", ".join(reserved)))
    with suppress(ValueError):
        UUID(name)
        raise Invalid(NAME_IS_UUID.text)
