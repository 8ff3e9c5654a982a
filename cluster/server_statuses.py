"""Nova's status of a server, derived from its vm_state and its task_state.

Filters and displayed values use the same table.
"""

from collections.abc import Iterable
from functools import cache

from django.db.models import Case, CharField, F, Q, TextField, Value, When
from django.db.models.functions import Cast, Coalesce

from cluster.drivers.rules import STATUSES
from cluster.models import Server

State = Server.State
DELETED = "DELETED"
JSON_NULL = Value("null", TextField())
PENDING_STATUS, ERROR_STATUS = STATUSES[State.PENDING], STATUSES[State.ERROR]
REBUILDING = ("rebuilding", "rebuild_block_device_mapping", "rebuild_spawning")
RESIZING = ("resizing", "resize_prep", "resize_migrating", "resize_migrated", "resize_finish")
# The statuses during operations, by vm_state, with the task states of the embedded cloud and of Nova.
TASK_STATUSES: dict[str, dict[str, tuple[str, ...]]] = {
    State.ACTIVE: {
        "REBOOT": ("rebooting", "reboot_pending", "reboot_started"),
        "HARD_REBOOT": ("rebooting_hard", "reboot_pending_hard", "reboot_started_hard"),
        "PASSWORD": ("updating_password",),
        "REBUILD": REBUILDING,
        "MIGRATING": ("migrating",),
        "RESIZE": RESIZING,
    },
    State.STOPPED: {"RESIZE": RESIZING, "REBUILD": REBUILDING},
    State.RESIZED: {"REVERT_RESIZE": ("resize_reverting",)},
    State.PAUSED: {"MIGRATING": ("migrating",)},
    State.ERROR: {"REBUILD": REBUILDING},
}


def conditions(*, knows_pending: bool) -> list[tuple[str, Q]]:
    """Return the statuses with the conditions of their servers; the first one that applies counts.

    Args:
        knows_pending: whether clients know PENDING; for others such servers are in ERROR.
    """
    busy = [
        (status, Q(state=state, task_state__in=tasks))
        for state, statuses in TASK_STATUSES.items()
        for status, tasks in statuses.items()
    ]
    idle = [(status, Q(state=state)) for state, status in STATUSES.items() if state != State.PENDING]
    return [
        (DELETED, Q(deleted_at__isnull=False)),
        *busy,
        (PENDING_STATUS if knows_pending else ERROR_STATUS, Q(state=State.PENDING)),
        *idle,
    ]


@cache
def status_expression(*, knows_pending: bool) -> Case:
    """Return the expression of a server's status."""
    whens = [When(condition, then=Value(status)) for status, condition in conditions(knows_pending=knows_pending)]
    return Case(*whens, default=Value("UNKNOWN"), output_field=CharField())


def list_statuses(*, knows_pending: bool) -> list[str]:
    return sorted({status for status, _ in conditions(knows_pending=knows_pending)})


def with_statuses(requested: Iterable[str], *, knows_pending: bool) -> Q:
    """Return the condition that a server has one of these statuses."""
    requested, matches, before = set(requested), Q(pk__in=[]), Q(pk__in=[])
    for status, condition in conditions(knows_pending=knows_pending):
        if status in requested:
            matches |= condition & ~before
        before |= condition
    return matches


def state_without_pending() -> Case:
    """Return the expression of a server's vm_state for clients that do not know PENDING."""
    pending = When(state=State.PENDING, then=Value(State.ERROR.value))
    return Case(pending, default=F("state"), output_field=CharField())


def fault_expression(*, knows_pending: bool) -> Case:
    """Return the expression of a server's fault as JSON, which Nova shows only in the statuses ERROR and DELETED."""
    has_fault = Q(deleted_at__isnull=False) | with_statuses([ERROR_STATUS], knows_pending=knows_pending)
    text = Coalesce(Cast("fault", TextField()), JSON_NULL)
    return Case(When(has_fault, then=text), default=JSON_NULL, output_field=TextField())
