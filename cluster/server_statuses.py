"""The status of a server, as Nova shows it: it follows from its vm_state and its task_state.

The one table here gives both the filter and what is shown.
"""

from collections.abc import Iterable
from functools import cache

from django.db.models import Case, CharField, F, Q, TextField, Value, When
from django.db.models.functions import Cast, Coalesce

from cluster.drivers.rules import STATUSES
from cluster.models import Server

State = Server.State
DELETED = "DELETED"
NOTHING = Value("null", TextField())
PENDING_STATUS, ERROR_STATUS = STATUSES[State.PENDING], STATUSES[State.ERROR]
REBUILDING = ("rebuilding", "rebuild_block_device_mapping", "rebuild_spawning")
RESIZING = ("resizing", "resize_prep", "resize_migrating", "resize_migrated", "resize_finish")
# What is shown while something is under way, by vm_state: the embedded cloud's task states, and Nova's.
UNDER_WAY: dict[str, dict[str, tuple[str, ...]]] = {
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
    """Return the statuses, and what is true of the servers that have them, the first that applies.

    Args:
        knows_pending: whether clients know of PENDING; to others such servers are in ERROR.
    """
    under_way = [
        (status, Q(state=state, task_state__in=tasks))
        for state, statuses in UNDER_WAY.items()
        for status, tasks in statuses.items()
    ]
    resting = [(status, Q(state=state)) for state, status in STATUSES.items() if state != State.PENDING]
    return [
        (DELETED, Q(deleted_at__isnull=False)),
        *under_way,
        (PENDING_STATUS if knows_pending else ERROR_STATUS, Q(state=State.PENDING)),
        *resting,
    ]


@cache
def shown(*, knows_pending: bool) -> Case:
    """Return the expression of a server's status."""
    whens = [When(condition, then=Value(status)) for status, condition in conditions(knows_pending=knows_pending)]
    return Case(*whens, default=Value("UNKNOWN"), output_field=CharField())


def statuses(*, knows_pending: bool) -> list[str]:
    return sorted({status for status, _ in conditions(knows_pending=knows_pending)})


def having(wanted: Iterable[str], *, knows_pending: bool) -> Q:
    """Return the condition of servers that have one of these statuses."""
    wanted, found, before = set(wanted), Q(pk__in=[]), Q(pk__in=[])
    for status, condition in conditions(knows_pending=knows_pending):
        if status in wanted:
            found |= condition & ~before
        before |= condition
    return found


def former_state() -> Case:
    """Return the expression of a server's vm_state for clients that do not know of PENDING."""
    pending = When(state=State.PENDING, then=Value(State.ERROR.value))
    return Case(pending, default=F("state"), output_field=CharField())


def fault(*, knows_pending: bool) -> Case:
    """Return the expression of what Nova shows as a fault, as JSON: with the statuses ERROR and DELETED only."""
    has_fault = Q(deleted_at__isnull=False) | having([ERROR_STATUS], knows_pending=knows_pending)
    text = Coalesce(Cast("fault", TextField()), NOTHING)
    return Case(When(has_fault, then=text), default=NOTHING, output_field=TextField())
