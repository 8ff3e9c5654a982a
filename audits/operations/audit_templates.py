"""The creation and change of audit templates, for the API, the console and the commands."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction

from audits import messages
from audits.models import NAME_LENGTH, AuditTemplate
from audits.operations.creation import save_named
from audits.operations.scope import check_scope
from audits.operations.strategies import complete_strategy_parameters, find_goal, find_strategy
from watcher_site.database.locks import lock_present
from watcher_site.database.text import require_storable
from watcher_site.history import differences, record
from watcher_site.refusals import Conflict, Invalid, NotFound

DESCRIPTION_LENGTH = 255
FIELDS = ["name", "description", "goal", "strategy", "scope", "default_parameters"]


def create_audit_template(
    *,
    name: str,
    goal: str,
    strategy: str | None = None,
    description: str | None = None,
    scope: list[Any] | None = None,
    default_parameters: Mapping[str, Any] | None = None,
) -> AuditTemplate:
    """Create a template. ``goal`` and ``strategy`` are names or UUIDs. Default parameters are stored unchanged.

    Raises:
        Invalid: the message names the field and the rule, or the goal or strategy is unknown.
        Conflict: another template has the name.
    """
    template = AuditTemplate()
    apply_changes(
        template,
        {
            "name": name,
            "goal": goal,
            "strategy": strategy,
            "description": description,
            "scope": scope,
            "default_parameters": default_parameters,
        },
    )
    details = {"goal": template.goal.name, "strategy": template.strategy and template.strategy.name}
    save_named(template, messages.AN_AUDIT_TEMPLATE.text, "audit_template.create", details)
    return template


@transaction.atomic
def change_audit_template(template: AuditTemplate, changes: Mapping[str, Any]) -> AuditTemplate:
    """Change some of ``name``, ``description``, ``goal``, ``strategy``, ``scope`` and ``default_parameters``.

    None removes an optional value. The resulting template is validated like a new one.

    Raises:
        Invalid: as in `create_audit_template`, and for an attempt to remove the name or the goal.
        NotFound: the template was deleted meanwhile.
        Conflict: another template has the name; or the goal or strategy changes without the default parameters.
    """
    locked = lock_present(template)
    if {"goal", "strategy"} & changes.keys() and locked.default_parameters and "default_parameters" not in changes:
        raise Conflict(messages.PARAMETERS_TO_UPDATE.text)
    before = readable_attributes(locked, changes)
    apply_changes(locked, changes)
    details = differences(before, readable_attributes(locked, changes))
    save_named(locked, messages.AN_AUDIT_TEMPLATE.text, "audit_template.update", details, [*FIELDS])
    return locked


def readable_attributes(template: AuditTemplate, names: Iterable[str]) -> dict[str, Any]:
    """Return these attributes for history."""
    values = {name: getattr(template, name, None) for name in names}
    return {name: getattr(value, "name", value) for name, value in values.items()}


@transaction.atomic
def delete_audit_template(template: AuditTemplate) -> None:
    """Delete a template. Audits that were created from it are kept.

    Raises:
        NotFound: the template was already deleted.
    """
    if not AuditTemplate.objects.filter(pk=template.pk).soft_delete():
        raise NotFound(messages.TEMPLATE_NOT_FOUND.fill(uuid=template.uuid))
    record("audit_template.delete", template)


def apply_changes(template: AuditTemplate, changes: Mapping[str, Any]) -> None:
    """Apply the changes to a template in memory, and validate the result."""
    if unknown := changes.keys() - FIELDS:
        raise Invalid(f"{min(unknown)}: is not an attribute of an audit template that can be changed.")
    if "name" in changes:
        template.name = checked_text("name", changes["name"], NAME_LENGTH)
        if not template.name:
            raise Invalid(messages.EMPTY_NAME.text)
    if "description" in changes:
        description = changes["description"]
        template.description = description and checked_text("description", description, DESCRIPTION_LENGTH)
    set_goal_and_strategy(template, changes)
    if "scope" in changes:
        template.scope = [] if changes["scope"] is None else changes["scope"]
        check_scope(template.scope)
    if "default_parameters" in changes:
        template.default_parameters = default_parameters_of(changes["default_parameters"])
    check_default_parameters(template)


def checked_text(field: str, text: Any, length: int) -> str:
    if not isinstance(text, str):
        raise Invalid(f"{field}: must be a text.")
    require_storable(field, text)
    if len(text) > length:
        raise Invalid(messages.TOO_LONG.fill(field=field, number=length))
    return text.strip()


def set_goal_and_strategy(template: AuditTemplate, changes: Mapping[str, Any]) -> None:
    """Set the goal and the strategy, and check that the strategy pursues the goal."""
    if "goal" in changes and not changes["goal"]:
        raise Invalid("Cannot remove 'goal' attribute from an audit template")
    try:
        if "goal" in changes:
            template.goal = find_goal(changes["goal"])
    except NotFound as problem:
        raise invalid_reference("goal", changes["goal"]) from problem
    strategy = changes.get("strategy", template.strategy and str(template.strategy.uuid))
    try:
        template.strategy = find_strategy(strategy, template.goal) if strategy else None
    except NotFound as problem:
        raise invalid_reference("strategy", strategy) from problem


def invalid_reference(field: str, identifier: str) -> Invalid:
    return Invalid(
        messages.INVALID_REFERENCE.fill(field=field, identifier=identifier, kind=field.capitalize(), same=identifier)
    )


def default_parameters_of(parameters: Any) -> dict[str, Any]:
    if parameters is not None and not isinstance(parameters, Mapping):
        raise Invalid("default_parameters: must be an object.")
    return dict(parameters or {})


def check_default_parameters(template: AuditTemplate) -> None:
    if not template.default_parameters:
        return
    if template.strategy is None:
        raise Invalid(messages.STRATEGY_REQUIRED.text)
    complete_strategy_parameters(
        template.strategy, template.default_parameters, "default_parameters", is_repeated=True
    )
