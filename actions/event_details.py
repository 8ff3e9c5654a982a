"""The policy on who may read the reasons of failed events, and the generic messages for other users.

See docs/compatibility.md, "Event details".
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from django.conf import settings

from actions.messages import (
    CANCELLED_ALONE,
    FAILED,
    FAILED_IN_PHASE,
    PLAN_FAILED_SENTENCE,
    SET_ASIDE,
    SET_ASIDE_BECAUSE,
)
from actions.models import FAILED_IN, NOT_EXECUTED, Action
from watcher_site.accounts.projects import projects_of
from watcher_site.api.serializers import Row
from watcher_site.api.versions import Version
from watcher_site.authorization.enforcement import decide
from watcher_site.configuration.policies import ADMIN, EVENT_DETAILS, NOVA, PROJECT_READER

# The microversion that added details to events.
DETAILS: Version = (1, 9)
DETAILS_RIGHT = "actions.view_event_details"
# Users who see all actions may see the machines that execute them, as in the list of services.
HOST_RIGHT = "actions.view_action"
GAVE_ITSELF_UP = CANCELLED_ALONE.text
COUNTED = re.compile(r"^.*?\d+ of \d+ actions? failed")
COUNTED_CANCELLED = re.compile(r"^.*\d+ of \d+( actions?)? cancelled")


def sees_details(user: Any, project: str | None = None) -> bool:
    """Return whether a user may read the faults of events, by the rule of the policy for event details.

    Args:
        project: the project of the events' server. Only a rule for members of projects uses it.
    """
    target = {"project_id": project} if project else {}
    for name in (EVENT_DETAILS, f"{NOVA}{EVENT_DETAILS}") if settings.POLICY_FILE else ():
        decision = decide(name, user, target)
        if decision is not None:
            return decision
    if user.has_perm(DETAILS_RIGHT):
        return True
    rule = settings.POLICIES[EVENT_DETAILS]
    if rule == ADMIN:
        return False
    return bool(user.has_perm(HOST_RIGHT) or (rule == PROJECT_READER and project and project in projects_of(user)))


def sees_host(user: Any) -> bool:
    """Return whether a user may see the names of the machines that executed actions."""
    return bool(user.has_perm(HOST_RIGHT))


def generic_message(state: str, message: str | None) -> str | None:
    """Return the message of an action without the reason of a failure; a message without one is returned unchanged."""
    if not message:
        return message
    if message.startswith(GAVE_ITSELF_UP):
        return GAVE_ITSELF_UP
    if message.startswith(FAILED_IN):
        return FAILED_IN_PHASE.fill(phase=message.removeprefix(FAILED_IN).partition(":")[0].strip())
    has_no_failure = state != Action.State.FAILED or message.startswith(NOT_EXECUTED)
    return message if has_no_failure else FAILED.text


def generic_plan_message(state: str, message: str | None) -> str | None:
    """Return the message of a plan without the reasons why its actions failed or cancelled themselves."""
    if not message:
        return message
    before, separator, _ = message.partition(GAVE_ITSELF_UP)
    if separator and (cancelled := COUNTED_CANCELLED.search(before)):
        message = f"{cancelled[0]}."
    if state in WITHOUT_FAILURE:
        return message
    if SET_ASIDE_BECAUSE.read(message):
        return SET_ASIDE.text
    counted = COUNTED.search(message)
    if counted:
        return f"{counted[0]}."
    return PLAN_FAILED_SENTENCE.text if state == "FAILED" else message


WITHOUT_FAILURE = ("RECOMMENDED", "PENDING", "SUCCEEDED", "SUPERSEDED")


def conceal_faults(actions: Iterable[Row]) -> None:
    """Remove the reasons of failures from actions in the format of the API."""
    for row in actions:
        for name in ("status_message", "status_reason"):
            if name in row:
                row[name] = generic_message(row["state"], row[name])
        if "outputs" in row:
            row["outputs"] = without_error(as_dictionary(row["outputs"]))


def conceal_plan_faults(plans: Iterable[Row]) -> None:
    """Remove the reasons of failed actions from plans in the format of the API."""
    for row in plans:
        if "status_message" in row:
            row["status_message"] = generic_plan_message(row["state"], row["status_message"])


def without_error(outputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in outputs.items() if name != "error"}


def as_dictionary(outputs: Any) -> dict[str, Any]:
    """Return outputs as a dictionary, even if a query returned them as text."""
    dictionary: dict[str, Any] = orjson.loads(orjson.dumps(outputs))
    return dictionary
