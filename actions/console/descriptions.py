"""The console's names of actions: their object and their parameters."""

from collections.abc import Mapping
from typing import Any

from actions.models import Action

# Bars and legends list what is done first, and what has not begun last.
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
    return " · ".join([*rest, *way(parameters.get("source_node"), parameters.get("destination_node"))])


def way(source: Any, destination: Any) -> list[str]:
    """Return from where to where, or just from where: then the cloud's scheduler chooses."""
    if destination:
        return [f"{source or ''} → {destination}".strip()]
    return [f"from {source}"] if source else []


def is_short(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and len(str(value)) <= 40


def in_order(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of states with what is done first."""
    return {state: counts[state] for state in ORDER if state in counts}
