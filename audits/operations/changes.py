"""Changes of an audit by users: state, name, parameters, schedule (docs/compatibility.md, "Audits")."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from audits import messages
from audits.models import Audit, is_continuous, is_event
from audits.models.schedule import check_period, read_interval
from audits.operations.creation import check_times, checked_name, merge_parameters, save_named
from watcher_site.api.bodies import Step, apply_patch, cannot_apply
from watcher_site.database.locks import lock_present
from watcher_site.history import differences, entries_of
from watcher_site.refusals import Invalid, WrongState
from watcher_site.request_context import current_request_id
from watcher_site.state_machine import TransitionNotAllowed
from watcher_site.windows.wall_clock import read_time

State = Audit.State
# Other attributes come from the template, or are written by the decision engine.
TIMES = ("start_time", "end_time")
SCHEDULE = ("interval", *TIMES)
CHANGEABLE = ("name", "parameters", "auto_trigger", "force", *SCHEDULE)
UNFINISHED = (State.PENDING, State.ONGOING, State.SUSPENDED)


@transaction.atomic
def change_audit(audit: Audit, patch: list[Step], *, is_strict: bool = True) -> None:
    """Apply a patch to an audit, completely or not at all. A run in progress continues unless the audit is cancelled.

    Args:
        is_strict: whether to refuse an interval and times for types of audits that do not use them.

    Raises:
        Invalid: a step does not fit, the state cannot be requested, or a value is not valid for a new audit.
        Conflict: another audit has the name.
        NotFound: the audit was deleted meanwhile.
    """
    audit = lock_present(audit)
    before = {**{name: serialize_value(getattr(audit, name)) for name in CHANGEABLE}, "state": audit.state}
    roots = [step["path"].split("/")[1] for step in patch]
    for root in roots:
        if root == "audit_template_uuid" or root == "type" or (root not in before and hasattr(audit, root)):
            raise cannot_apply(patch, f"/{root} can't be updated.")
    patched = apply_patch(before, patch)
    if "state" in roots:
        change_state(audit, patch, patched.get("state"))
    changes = {name: patched.get(name) for name in CHANGEABLE if patched.get(name) != before[name]}
    if changes:
        write(audit, changes, differences(before, changes), is_strict=is_strict)


def serialize_value(value: Any) -> Any:
    """Return the value of a column in the format of the API."""
    return value.replace(tzinfo=None).isoformat() if isinstance(value, datetime) else value


def change_state(audit: Audit, patch: list[Step], requested: Any) -> None:
    before = audit.state
    try:
        if requested == State.CANCELLED:
            audit.abandon()
        elif requested == State.SUSPENDED:
            audit.suspend_series()
        elif requested == State.ONGOING:
            audit.resume_series()
        else:
            raise TransitionNotAllowed
    except TransitionNotAllowed:
        raise cannot_apply(patch, f"State transition not allowed: ({before} -> {requested})", WrongState) from None


def write(audit: Audit, changes: dict[str, Any], details: Mapping[str, Any], *, is_strict: bool) -> None:
    now = timezone.now()
    for name, value in changes.items():
        setattr(audit, name, checked_value(audit, name, value, now))
    fields = [*changes]
    if not changes.keys().isdisjoint(SCHEDULE):
        if is_strict or may_run_again(audit):
            check_schedule(audit, changes, now)
        if may_run_again(audit):
            reschedule(audit, changes, now)
            fields.append("next_run_time")
    save_named(audit, messages.AN_AUDIT.text, "audit.update", details, fields)


def checked_value(audit: Audit, name: str, value: Any, now: datetime) -> Any:
    """Return a value for a column, validated by the rules for new audits."""
    if name == "name":
        text = checked_name(value)
        if not text:
            raise Invalid(messages.AUDIT_WITHOUT_NAME.text)
        return text
    if name == "parameters":
        return merge_parameters(None, audit.strategy, value, is_repeated=audit.audit_type != Audit.Type.ONESHOT)
    if name == "interval":
        return read_interval(value, now)
    if name in TIMES:
        return read_time(name, value)
    if not isinstance(value, bool):
        raise Invalid(f"Invalid input for field/attribute {name}. Value: '{value}'. It must be a boolean.")
    return value


def may_run_again(audit: Audit) -> bool:
    """Return whether a series may have further runs."""
    return is_continuous(audit) and audit.state in UNFINISHED


def has_ended(audit: Audit) -> bool:
    """Return whether an audit does not run again. A webhook triggers an EVENT audit that SUCCEEDED again."""
    return audit.state in Audit.FINAL and not (is_event(audit) and audit.state == State.SUCCEEDED)


def check_schedule(audit: Audit, changes: Mapping[str, Any], now: datetime) -> None:
    """Raise `Invalid` if the new interval and times are not valid for the audit, or contradict each other."""
    check_times(audit.audit_type, audit.interval, audit.start_time, audit.end_time)
    if has_ended(audit):
        field = next(name for name in SCHEDULE if name in changes)
        raise WrongState(messages.DOES_NOT_RUN_AGAIN.fill(field=field, state=audit.state))
    check_period(audit.start_time, audit.end_time, now if may_run_again(audit) or "end_time" in changes else None)


def reschedule(audit: Audit, changes: Mapping[str, Any], now: datetime) -> None:
    """Set the time of the next run of a series.

    A new interval begins now, or at a start in the future. A new end does not change the times of runs.
    """
    if changes.keys() & {"interval", "start_time"}:
        begins = audit.state == State.PENDING or (audit.start_time or now) > now
        audit.next_run_time = audit.schedule.first(now) if begins else audit.schedule.again(now)
    else:
        audit.next_run_time = audit.schedule.before_end(audit.next_run_time or audit.schedule.again(now))
    if audit.next_run_time is None and "end_time" not in changes:
        raise Invalid(messages.NO_RUN.text)


@transaction.atomic
def trigger_audit(audit: Audit) -> None:
    """Request a run of an EVENT audit. Further calls before that run share it.

    Raises:
        Invalid: its type or state does not allow it, with the messages of Watcher.
        NotFound: the audit was deleted meanwhile.
    """
    audit = lock_present(audit)
    if not is_event(audit):
        raise Invalid(messages.TYPE_DISALLOWED.fill(type=audit.audit_type))
    try:
        audit.trigger(timezone.now(), current_request_id())
    except TransitionNotAllowed:
        raise WrongState(messages.STATE_DISALLOWED.fill(state=audit.state)) from None
    audit.save_state(*entries_of("audit.trigger", audit))
