"""A person changes an audit: its state, its name, what a later run will use (`watcher-api` section 11)."""

from typing import Any

from django.db import transaction

from audits.creation import checked_name, merge_parameters, save_named
from audits.models import Audit
from watcher_site.api.patches import Step, apply_patch, cannot_apply
from watcher_site.refusals import Invalid

State = Audit.State
CANCELLED_BY_USER = "Audit was canceled by user"
# What else an audit has comes from its template, or belongs to the decision engine.
CHANGEABLE = ("name", "parameters", "interval", "auto_trigger", "force")


@transaction.atomic
def change_audit(audit: Audit, patch: list[Step]) -> None:
    """Apply a patch to an audit, all of it or nothing.

    Raises:
        Invalid: a step that does not fit, a state that cannot be reached, a value that a new audit could not have.
        Conflict: another audit has the name.
        ConcurrentTransition: the audit's state was changed at the same time.
    """
    before = {name: getattr(audit, name) for name in (*CHANGEABLE, "state")}
    roots = [step["path"].split("/")[1] for step in patch]
    for root in roots:
        if root == "audit_template_uuid" or root == "type" or (root not in before and hasattr(audit, root)):
            raise cannot_apply(patch, f"/{root} can't be updated.")
    patched = apply_patch(before, patch)
    if "state" in roots:
        change_state(audit, patch, patched.get("state"))
    changes = {name: patched.get(name) for name in CHANGEABLE if patched.get(name) != before[name]}
    if changes:
        write(audit, changes)


def change_state(audit: Audit, patch: list[Step], asked: Any) -> None:
    if asked != State.CANCELLED or audit.state not in (State.PENDING, State.ONGOING):
        raise cannot_apply(patch, f"State transition not allowed: ({audit.state} -> {asked})")
    audit.cancel(CANCELLED_BY_USER)
    audit.save_state()


def write(audit: Audit, changes: dict[str, Any]) -> None:
    for name, value in changes.items():
        setattr(audit, name, checked(audit, name, value))
    save_named(audit, "An audit", list(changes))


def checked(audit: Audit, name: str, value: Any) -> Any:
    """Return a value as it is stored, held against the rules for new audits."""
    if name == "name":
        text = checked_name(value)
        if not text:
            raise Invalid("Invalid input for field/attribute name. It must not be empty.")
        return text
    if name == "parameters":
        return merge_parameters(None, audit.strategy, value)
    if name == "interval" and value is not None:
        raise Invalid("Interval of audit must not be set for ONESHOT.")
    if name in {"auto_trigger", "force"} and not isinstance(value, bool):
        raise Invalid(f"Invalid input for field/attribute {name}. Value: '{value}'. It must be a boolean.")
    return value
