"""The console's texts about actions: their parameters, and why they cannot be skipped or restored."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from actions.models import Action
from actions.models.refusals import Operation, Refusal, find_refusals
from watcher_site.state_machine import StatefulModel
from watcher_site.templatetags.console import ago

# Bars and legends list final states first, and pending actions last.
OPEN = [state for state in Action.State if state not in Action.FINAL]
ORDER = [*(state for state in Action.State if state in Action.FINAL), *reversed(OPEN)]
OWN_WORDS = ("resource_name", "resource_id", "source_node", "destination_node", "message")

# What the number of a parameter counts, where it says nothing by itself.
UNITS = {("sleep", "duration"): " s"}


def manner(action: Action) -> str:
    """Return the rest of an action's parameters in one line, such as ``live · compute1 → compute2``."""
    parameters = action.input_parameters
    shown = {name: value for name, value in parameters.items() if name not in OWN_WORDS and is_short(value)}
    rest = [f"{value}{UNITS.get((action.action_type, name), '')}" for name, value in shown.items()]
    return " · ".join([*rest, *route(parameters.get("source_node"), parameters.get("destination_node"))])


def route(source: Any, destination: Any) -> list[str]:
    """Return the source and the destination, or the source only: then the cloud's scheduler chooses."""
    if destination:
        return [f"{source or ''} → {destination}".strip()]
    return [f"from {source}"] if source else []


def is_short(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and len(str(value)) <= 40


def in_order(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of states, final states first."""
    return {state: counts[state] for state in ORDER if state in counts}


PARTICIPLES = {Operation.SKIP: "skipped", Operation.RESTORE: "restored"}


def explain_refusal(operation: Operation, action: Action) -> str | None:
    """Return why an action cannot be skipped or restored: its state, by whom and since when; None if it can be.

    The action comes with its plan.
    """
    refusals = list(find_refusals(operation, action))
    if not refusals:
        return None
    if Refusal.PLAN_STATE in refusals:
        plan, participle = action.action_plan, PARTICIPLES[operation]
        return f"Actions of this plan can no longer be {participle}: the plan is {plan.state} ({since(plan)})."
    if Refusal.ORIGIN_SKIPPED in refusals and action.derived_from:
        return f"{action.called} is derived from {action.derived_from.called}, which is skipped. Restore that action."
    if Refusal.SKIPPED_AUTOMATICALLY in refusals:
        return f"{action.called} was skipped automatically and cannot be restored."
    if operation == Operation.RESTORE:
        return f"{action.called} is not skipped: it is {action.state} ({since(action)})."
    if action.state == Action.State.SKIPPED and action.skipped_by is not None:
        why = f"Reason: {action.reason}" if action.reason else "No reason given."
        return f"{action.called} was skipped by {action.skipped_by} {ago(changed(action))}. {why}"
    message = f" {action.status_message}" if action.status_message else ""
    return f"{action.called} is already {action.state} ({since(action)}).{message}"


def since(record: StatefulModel) -> str:
    return f"updated {ago(changed(record))}"


def changed(record: StatefulModel) -> datetime:
    return record.updated_at or record.created_at
