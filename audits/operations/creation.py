"""The creation of audits, for the API, the console and the commands.

Clients of Watcher's API match the order of the checks and the messages of the refusals.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.utils import timezone

from audits import messages
from audits.models import NAME_LENGTH, Audit, AuditTemplate, Goal, Strategy
from audits.models.schedule import Schedule, check_period, read_interval
from audits.operations.scope import check_scope
from audits.operations.strategies import complete_strategy_parameters, find_goal, find_strategy
from watcher_site import history
from watcher_site.database.text import require_storable
from watcher_site.database.uniqueness import refuse_taken
from watcher_site.outbox.kinds import CREATE, UPDATE
from watcher_site.outbox.writing import announce
from watcher_site.refusals import Conflict, Invalid
from watcher_site.request_context import current_request_id
from watcher_site.windows.wall_clock import read_time


def create_audit(
    *,
    audit_type: str,
    goal: str | None = None,
    audit_template_uuid: str | None = None,
    strategy: str | None = None,
    name: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    scope: list[Any] | None = None,
    interval: str | None = None,
    auto_trigger: bool = False,
    force: bool = False,
    start_time: str | datetime | None = None,
    end_time: str | datetime | None = None,
) -> Audit:
    """Create a PENDING audit. Its type determines when it runs: immediately, at its start time, or by its webhook.

    ``goal`` and ``strategy`` are names or UUIDs. Omitted values come from the template, including single parameters.
    Long names are truncated. The default name consists of the name of the strategy, the template or the goal, and the
    time. ``interval`` has a format of `read_interval`, the times one of `read_time`.

    Raises:
        Invalid: the message names the field and the rule.
        NotFound: the goal or strategy does not exist.
        Conflict: another audit has the name.
    """
    check_kind(audit_type, goal, audit_template_uuid)
    check_times(audit_type, interval, start_time, end_time)
    now = timezone.now()
    schedule = read_schedule(interval, start_time, end_time, now)
    template = template_of(audit_template_uuid) if audit_template_uuid else None
    name = checked_name(name)
    check_scope(scope or [])
    goal_row = template.goal if template else find_goal(goal or "")
    inherited = template.strategy if template else None
    strategy_row = find_strategy(strategy, goal_row) if strategy else inherited
    audit = Audit(
        name=name or default_name(strategy_row or template or goal_row),
        audit_type=audit_type,
        goal=goal_row,
        strategy=strategy_row,
        parameters=merge_parameters(template, strategy_row, parameters, is_repeated=audit_type != Audit.Type.ONESHOT),
        scope=scope or (template.scope if template else []),
        auto_trigger=auto_trigger,
        force=force,
        request_id=current_request_id(),
        interval=schedule.interval or None,
        start_time=schedule.start_time,
        end_time=schedule.end_time,
        next_run_time=first_run(schedule, now) if audit_type == Audit.Type.CONTINUOUS else None,
    )
    save_named(
        audit,
        messages.AN_AUDIT.text,
        "audit.create",
        {"goal": goal_row.name, "strategy": strategy_row and strategy_row.name},
    )
    return audit


def check_kind(audit_type: Any, goal: Any, audit_template_uuid: Any) -> None:
    if audit_type not in Audit.Type.values:
        raise Invalid(f"Audit type {audit_type} could not be found")
    if not goal and not audit_template_uuid:
        raise Invalid(messages.NO_GOAL.text)
    if goal and audit_template_uuid:
        raise Invalid(messages.GOAL_AND_TEMPLATE.text)


def check_times(audit_type: str, interval: Any, start_time: Any, end_time: Any) -> None:
    if interval is not None and not isinstance(interval, str):
        raise Invalid("interval: must be a text.")
    if audit_type == Audit.Type.ONESHOT and interval:
        raise Invalid(messages.INTERVAL_OF_ONESHOT.text)
    if audit_type == Audit.Type.CONTINUOUS and not (interval or "").strip():
        raise Invalid(messages.INTERVAL_OF_CONTINUOUS.text)
    if audit_type == Audit.Type.ONESHOT and (start_time or end_time):
        raise Invalid(messages.TIMES_OF_ONESHOT.text)


def read_schedule(interval: Any, start_time: Any, end_time: Any, now: datetime) -> Schedule:
    text = read_interval(interval, now)
    schedule = Schedule(text or "", read_time("start_time", start_time), read_time("end_time", end_time))
    check_period(schedule.start_time, schedule.end_time, now)
    return schedule


def first_run(schedule: Schedule, now: datetime) -> datetime:
    time = schedule.first(now) if schedule.interval else None
    if time is None:
        raise Invalid(messages.NO_RUN.text)
    return time


def template_of(identifier: str) -> AuditTemplate:
    try:
        uuid = UUID(identifier)
    except (ValueError, AttributeError, TypeError):
        raise Invalid(
            f"Invalid input for field/attribute audit_template_uuid. Value: '{identifier}'. "
            f"Expected a uuid but received {identifier}."
        ) from None
    template = AuditTemplate.objects.present().select_related("goal", "strategy").filter(uuid=uuid).first()
    if template is None:
        raise Invalid(messages.NO_TEMPLATE.text)
    return template


def checked_name(name: Any) -> str:
    """Return the name, truncated to the maximum length, or an empty text without one."""
    if name is not None and not isinstance(name, str):
        raise Invalid("name: must be a text.")
    require_storable("name", name)
    return (name or "").strip()[:NAME_LENGTH].strip()


def default_name(origin: Strategy | AuditTemplate | Goal) -> str:
    """Return a name for an audit from its origin and the time. The name of the origin is truncated if necessary."""
    time = datetime.now(UTC).replace(tzinfo=None).isoformat()
    return f"{origin.name[: NAME_LENGTH - len(time) - 1]}-{time}"


def merge_parameters(
    template: AuditTemplate | None,
    strategy: Strategy | None,
    parameters: Mapping[str, Any] | None,
    *,
    is_repeated: bool,
) -> dict[str, Any]:
    """Return the given parameters, completed by those of the template for the same strategy, and by defaults."""
    if parameters is not None and not isinstance(parameters, Mapping):
        raise Invalid("parameters: must be an object.")
    if parameters and not (strategy and strategy.parameters_spec):
        raise Invalid(messages.PARAMETERS_WITHOUT_STRATEGY.text)
    if strategy is None:
        return {}
    inherited = template.default_parameters if template and template.strategy_id == strategy.pk else {}
    return complete_strategy_parameters(strategy, {**inherited, **(parameters or {})}, is_repeated=is_repeated)


def save_named(
    record: Any, kind: str, event: str, details: Mapping[str, Any], fields: list[str] | None = None
) -> None:
    """Save an audit or a template, as a new row or some fields of it, and record the event in history.

    Raises:
        Conflict: another record has its name.
    """
    refusal = Conflict(messages.NAME_TAKEN.fill(kind=kind, name=record.name))
    with refuse_taken(type(record), "name", refusal):
        record.save() if fields is None else record.save_changes(fields)
        history.record(event, record, details=details)
        if isinstance(record, Audit):
            announce(Audit.notified_as, [CREATE if fields is None else UPDATE], [record.pk])
