"""Conditions that must hold after processes were killed and stopped while they executed plans."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q

from actions.engine.messages import INTERRUPTED, LOST_PROCESSES
from actions.messages import TOO_LONG
from actions.models import Action, ActionEvent
from cluster.models import Pool, Server, Volume
from cluster.models.storage import USAGE_COLUMNS
from plans.models import ActionPlan
from tests.chaos.change_records import count_changes, count_changes_to_values

# The column of the embedded cloud that each action type changes.
CHANGED_COLUMNS = {
    "migrate": "cluster_server.node_id",
    "stop": "cluster_server.state",
    "resize": "cluster_server.flavor",
    "volume_migrate": "cluster_volume.pool_id",
    "change_nova_service_state": "cluster_computenode.status",
}
# The permitted numbers of changes to the object of an action, by the final state of the action.
PERMITTED_CHANGES = {
    Action.State.SUCCEEDED: {1},
    Action.State.FAILED: {0},
    Action.State.SKIPPED: {0},
    Action.State.CANCELLED: {0},
}
# The columns of a server and of a volume without an operation.
IDLE_SERVER = {"task_state": None, "destination": None, "new_flavor": None, "operation_owner": ""}
IDLE_VOLUME = {"migration_status": None, "destination": None, "operation_owner": ""}
# An action that timed out may have changed its object or not.
TIMED_OUT = TOO_LONG.opening
# An action that failed because too many processes were lost. This must not occur here.
LOST = (LOST_PROCESSES.text.partition("%(number)s")[2], INTERRUPTED.start)


def find_failures() -> list[str]:
    """Return a description of each condition that does not hold."""
    checks = (
        unfinished,
        repeatedly_final,
        wrong_changes,
        failed_by_lost_processes,
        early_timeouts,
        repeatedly_derived,
        inconsistent_derivations,
        open_phases,
        inconsistent_plans,
        open_operations,
        wrong_pool_usage,
    )
    return [failure for check in checks for failure in check()]


def unfinished() -> list[str]:
    plans = ActionPlan.objects.exclude(state__in=ActionPlan.FINAL)
    actions = Action.objects.unfinished()
    return [f"plan {plan} is {plan.state}" for plan in plans] + [f"{action} is {action.state}" for action in actions]


def repeatedly_final() -> list[str]:
    """Return the actions and plans that changed to a final state more than once."""
    return [
        f"{column.partition('.')[0]} {uuid} changed to a final state {number} times"
        for column, states in (("actions_action.state", Action.FINAL), ("plans_actionplan.state", ActionPlan.FINAL))
        for uuid, number in count_changes_to_states(column, states).items()
        if number > 1
    ]


def count_changes_to_states(column: str, states: frozenset[str]) -> Counter[UUID]:
    changes: Counter[UUID] = Counter()
    for (uuid, state), number in count_changes_to_values(column).items():
        if state in states:
            changes[uuid] += number
    return changes


def wrong_changes() -> list[str]:
    """Return the actions whose number of changes to the cloud does not match their final state."""
    wrong = []
    for action_type, column in CHANGED_COLUMNS.items():
        changes = count_changes(column)
        for action in Action.objects.filter(action_type=action_type):
            number = changes[UUID(action.input_parameters["resource_id"])]
            permitted = {0, 1} if is_timed_out(action) else PERMITTED_CHANGES.get(action.state, set())
            if number not in permitted:
                wrong.append(f"{action} changed {column} {number} times: {describe(action)}")
    return wrong


def is_timed_out(action: Action) -> bool:
    return action.state == Action.State.FAILED and TIMED_OUT in (action.status_message or "")


def timed_out_or_lost() -> list[Action]:
    """Return the actions that failed because they timed out, or because too many processes were lost."""
    messages = Q(status_message__contains=TIMED_OUT)
    for text in LOST:
        messages |= Q(status_message__contains=text)
    return list(Action.objects.filter(messages, state=Action.State.FAILED))


def failed_by_lost_processes() -> list[str]:
    """Return the actions that failed because processes that executed them together with others were lost."""
    return [
        f"{action} failed because processes were lost: {describe(action)}"
        for action in timed_out_or_lost()
        if not is_timed_out(action)
    ]


def open_operations() -> list[str]:
    """Return the servers and volumes with an operation that did not end, and that no error message reports."""
    servers = Server.objects.exclude(**IDLE_SERVER)
    volumes = Volume.objects.exclude(**IDLE_VOLUME)
    errors = " ".join(action.outputs.get("error", "") for action in Action.objects.filter(state=Action.State.FAILED))
    return [
        f"{row._meta.verbose_name} {row.uuid} still has {columns}: {describe_owner(row)}"
        for row, columns in with_operation_columns((IDLE_SERVER, servers), (IDLE_VOLUME, volumes))
        if str(row.uuid) not in errors
    ]


def with_operation_columns(*rows: Any) -> Iterator[tuple[Server | Volume, dict[str, Any]]]:
    """Yield each row with its columns that differ from those of an idle one."""
    for idle, found in rows:
        for row in found:
            yield row, {name: getattr(row, name) for name in idle if getattr(row, name) != idle[name]}


def describe_owner(row: Server | Volume) -> str:
    """Return the history of the action that began the operation on a row."""
    action = Action.objects.filter(uuid=row.operation_owner.partition("/")[0] or None).first()
    return f"{action}: {describe(action)}" if action else "no action began it"


def wrong_pool_usage() -> list[str]:
    """Return the pools whose stored usage differs from the usage of their volumes."""
    pools = list(Pool.objects.present())
    held = Volume.objects.held_by(pools)
    wrong = []
    for pool in pools:
        stored = {name: getattr(pool, name) for name in USAGE_COLUMNS}
        pool.set_usage(*held[pool.pk])
        actual = {name: getattr(pool, name) for name in USAGE_COLUMNS}
        if stored != actual:
            wrong.append(f"pool {pool.name} has the usage {stored} instead of {actual}")
    return wrong


def early_timeouts() -> list[str]:
    """Return the actions that timed out before their attempt had used its time."""
    timeouts = ActionEvent.objects.filter(details__startswith=TIMED_OUT).select_related("action")
    return [
        f"{timeout.action} timed out too early: {describe(timeout.action)}"
        for timeout in timeouts
        if not has_used_its_time(timeout)
    ]


def has_used_its_time(timeout: ActionEvent) -> bool:
    phases: Iterable[ActionEvent] = timeout.action.events.filter(
        attempt=timeout.attempt, event__in=["execute", "go_on"]
    )
    end = timeout.finish_time or timeout.start_time
    allowed = timedelta(seconds=timeout.action.seconds_allowed)
    return all(phase.start_time + allowed <= end for phase in phases)


def repeatedly_derived() -> list[str]:
    """Return the objects with more than one action.

    The workload has one action for each object, and a deriving action that runs again must not derive another one.
    """
    number = Counter(
        Action.objects.exclude(target=None).filter(action_type__in=CHANGED_COLUMNS).values_list("target", flat=True)
    )
    return [f"{target} has {times} actions" for target, times in number.items() if times > 1]


def inconsistent_derivations() -> list[str]:
    """Return the actions that succeeded although a derived action is neither SUCCEEDED nor SKIPPED."""
    deriving = Action.objects.filter(has_derived=True, state=Action.State.SUCCEEDED)
    return [
        f"{action} is {action.state}, and its derived action {derived} is {derived.state}"
        for action in deriving
        for derived in action.derived.exclude(state__in=(Action.State.SUCCEEDED, Action.State.SKIPPED))
    ]


def open_phases() -> list[str]:
    """Return the phases without an end. A phase whose outcome is unknown has one, too."""
    return [
        f"{phase} has not ended: {describe(phase.action)}" for phase in ActionEvent.objects.filter(finish_time=None)
    ]


def describe(action: Action) -> str:
    """Return the state and the phases of an action."""
    phases = [
        f"{phase.event}({phase.attempt}) {phase.start_time:%S.%f} to {phase.finish_time:%S.%f}"
        if phase.finish_time
        else f"{phase.event}({phase.attempt}) from {phase.start_time:%S.%f}"
        for phase in action.events.all()
    ]
    return f"{action.state} ({action.status_message}): {', '.join(phases)}"


def inconsistent_plans() -> list[str]:
    """Return the plans whose state does not match their actions.

    A plan is FAILED or CANCELLED only if one of its actions is, and SUCCEEDED only if no action is FAILED.
    """
    wrong = []
    for plan in ActionPlan.objects.all():
        counts = plan.actions.count_states()
        has_any = {state: bool(counts.get(state)) for state in ("FAILED", "CANCELLED")}
        if not has_any.get(plan.state, not has_any["FAILED"]):
            wrong.append(f"plan {plan} is {plan.state} with {counts}")
    return wrong
