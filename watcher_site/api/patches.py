"""JSON Patch (RFC 6902) with the rules and the words of existing servers: add, replace and remove."""

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

import jsonpatch
import orjson

from watcher_site.refusals import Invalid

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
    """Return the steps of a patch.

    Args:
        internal: paths that nobody may change, beside those that no resource has open.
        mandatory: paths that cannot be removed.
        allowed: the only paths that there are; all, where it is left out.

    Raises:
        Invalid: the document is no such patch, with the step and the rule.
    """
    if not isinstance(document, list):
        raise Invalid("Invalid input for field/attribute patch. A list of JSON Patch operations is expected.")
    for step in document:
        check_form(step)
        check_step_path(step, internal, mandatory, allowed)
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


def check_step_path(step: Step, internal: Collection[str], mandatory: Collection[str], allowed: Any) -> None:
    path = step["path"]
    if allowed is not None and path not in allowed:
        raise Invalid(f"'{path}' is not an allowed attribute and can not be updated")
    if path in INTERNAL or path in internal:
        raise Invalid(f"'{path}' is an internal attribute and can not be updated")
    if step["op"] == "remove" and path in mandatory:
        raise Invalid(f"'{path}' is a mandatory attribute and can not be removed")


def divide(steps: Iterable[Any], belongs: Callable[[Any], bool]) -> tuple[list[Any], list[Any]]:
    """Return those steps of a patch that belong together, and the others, each in their order."""
    chosen: list[Any] = []
    others: list[Any] = []
    for step in steps:
        (chosen if belongs(step) else others).append(step)
    return chosen, others


def apply_patch(attributes: dict[str, Any], patch: list[Step]) -> dict[str, Any]:
    """Return the attributes as the patch leaves them; one step that fails fails all.

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
    """Return the refusal of a patch that is well formed and cannot be applied."""
    return refusal(f"Couldn't apply patch '{orjson.dumps(patch).decode()}'. Reason: {reason}")
