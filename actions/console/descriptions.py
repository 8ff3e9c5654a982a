"""The console's texts about actions: their parameters, and why they cannot be skipped or restored."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from actions.models import Action, ActionEvent
from actions.models.refusals import Operation, Refusal, find_refusals
from watcher_site.console.columns import fill_placeholders
from watcher_site.messages import Text, translate_message
from watcher_site.state_machine import StatefulModel
from watcher_site.templatetags.console import ago
from watcher_site.templatetags.names import name as isolated

# Bars and legends list final states first, and pending actions last.
OPEN = [state for state in Action.State if state not in Action.FINAL]
ORDER = [*(state for state in Action.State if state in Action.FINAL), *reversed(OPEN)]
# The maximum length of a name, which leaves space for other columns.
NAME_LENGTH = 60
SEPARATE_PARAMETERS = ("resource_name", "resource_id", "source_node", "destination_node", "message")

# The units of numbers whose parameter name does not show it.
UNITS = {("sleep", "duration"): " s"}
# The results of phases, with translatable labels. In English these are the names in the API.
RESULTS: Mapping[str, Text] = {
    ActionEvent.Result.SUCCESS: pgettext_lazy("result", "Success"),
    ActionEvent.Result.SKIPPED: pgettext_lazy("result", "Skipped"),
    ActionEvent.Result.CANCELLED: pgettext_lazy("result", "Cancelled"),
    ActionEvent.Result.ERROR: pgettext_lazy("result", "Error"),
    ActionEvent.Result.RETRY: pgettext_lazy("result", "Retry"),
    ActionEvent.Result.WAITING: pgettext_lazy("result", "Waiting"),
}


# The states of actions, plans and audits within sentences; elsewhere they are shown as in the API.
STATE_WORDS: Mapping[str, Text] = {
    Action.State.PENDING: pgettext_lazy("state", "pending"),
    Action.State.ONGOING: pgettext_lazy("state", "ongoing"),
    Action.State.SUSPENDED: pgettext_lazy("state", "suspended"),
    Action.State.CANCELLING: pgettext_lazy("state", "cancelling"),
    Action.State.SUCCEEDED: pgettext_lazy("state", "succeeded"),
    Action.State.FAILED: pgettext_lazy("state", "failed"),
    Action.State.SKIPPED: pgettext_lazy("state", "skipped"),
    Action.State.CANCELLED: pgettext_lazy("state", "cancelled"),
    "DELETED": pgettext_lazy("state", "deleted"),
    "RECOMMENDED": pgettext_lazy("state", "recommended"),
    "SUPERSEDED": pgettext_lazy("state", "superseded"),
}


def state_word(state: str) -> Text:
    return STATE_WORDS[state]


def result_label(result: str | None) -> Text:
    """Return the label of the result of a phase, which has none while it runs."""
    return RESULTS.get(result, result) if result else _("running")


def describe_parameters(action: Action) -> SafeString:
    """Return the parameters that are not shown separately in one line, such as ``live · compute1 → compute2``.

    Each value is isolated: names in scripts that are written from right to left would reverse the route.
    """
    parameters = action.input_parameters
    shown = {name: value for name, value in parameters.items() if name not in SEPARATE_PARAMETERS and is_short(value)}
    descriptions = [f"{value}{UNITS.get((action.action_type, name), '')}" for name, value in shown.items()]
    # Without a destination the cloud chooses it, or another one if the given one cannot accept the server.
    destination = action.outputs.get("destination_node") or parameters.get("destination_node")
    route = describe_route(parameters.get("source_node"), destination)
    return format_html_join(" · ", "{}", ((part,) for part in (*map(isolated, descriptions), *route)))


def describe_route(source: Any, destination: Any) -> list[SafeString]:
    """Return the source and the destination, or only the source while the cloud has not chosen one."""
    origin = isolated(shorten(str(source))) if source else ""
    if destination:
        return [format_html("{}→ {}", origin and format_html("{} ", origin), isolated(shorten(str(destination))))]
    return [fill_placeholders(_("from %(node)s"), node=origin)] if origin else []


def shorten(name: str) -> str:
    """Return the beginning of a name, with its control characters, which pages mark."""
    return name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 1]}…"


def is_short(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and len(str(value)) <= 40


def order_state_counts(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of states, final states first."""
    return {state: counts[state] for state in ORDER if state in counts}


TOO_LATE = {
    Operation.SKIP: _("Actions of this plan can no longer be skipped: the plan is %(state)s (%(since)s)."),
    Operation.RESTORE: _("Actions of this plan can no longer be restored: the plan is %(state)s (%(since)s)."),
}


def explain_refusal(operation: Operation, action: Action) -> str | None:
    """Return the reason why an action cannot be skipped or restored, or None if it can be.

    The text contains the state, the user and the time. The plan of the action must be loaded.
    """
    refusals = list(find_refusals(operation, action))
    if not refusals:
        return None
    if Refusal.PLAN_STATE in refusals:
        plan = action.action_plan
        return TOO_LATE[operation] % {"state": plan.state, "since": describe_last_change(plan)}
    if Refusal.PLAN_APPROVED in refusals:
        return str(_("The plan was approved and started: its actions can no longer be restored."))
    if Refusal.ORIGIN_SKIPPED in refusals and action.derived_from:
        names = {"action": action.called, "origin": action.derived_from.called}
        return _("%(action)s is derived from %(origin)s, which is skipped. Restore that action.") % names
    if Refusal.SKIPPED_AUTOMATICALLY in refusals:
        return _("%(action)s was skipped automatically and cannot be restored.") % {"action": action.called}
    state = {"action": action.called, "state": action.state, "since": describe_last_change(action)}
    if operation == Operation.RESTORE:
        return _("%(action)s is not skipped: it is %(state)s (%(since)s).") % state
    if action.state == Action.State.SKIPPED and action.skipped_by is not None:
        why = _("Reason: %(reason)s") % {"reason": action.reason} if action.reason else _("No reason given.")
        skip = {"action": action.called, "person": action.skipped_by, "ago": ago(time_of_last_change(action))}
        return f"{_('%(action)s was skipped by %(person)s %(ago)s.') % skip} {why}"
    message = f" {translate_message(action.status_message)}" if action.status_message else ""
    return f"{_('%(action)s is already %(state)s (%(since)s).') % state}{message}"


def describe_last_change(record: StatefulModel) -> str:
    return _("updated %(ago)s") % {"ago": ago(time_of_last_change(record))}


def time_of_last_change(record: StatefulModel) -> datetime:
    return record.updated_at or record.created_at
