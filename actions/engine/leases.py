"""The lease and the slot of an action, as its execution uses them."""

import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from watcher_site.database.queries import Bound


@dataclass(frozen=True)
class CurrentState:
    """The current row of a running action, and of its plan."""

    state: str
    attempt: int
    control: str | None
    is_held: bool
    """Whether the plan is under way, and the action owned by the worker of the lease."""
    is_being_cancelled: bool
    """Whether the plan is being cancelled."""


class Lease(Protocol):
    """A worker's right to work at the actions of a plan: some numbers and texts, which any process can be sent."""

    @property
    def host(self) -> str:
        """Return the name of the machine that does the work."""

    @property
    def owner(self) -> int | None:
        """Return the primary key of the service that executes the actions, and owns them meanwhile."""

    @property
    def request_id(self) -> str:
        """Return the id of the request that started the plan, or an empty text."""

    @property
    def plan_uuid(self) -> str:
        """Return the UUID of the plan, for traces."""

    @property
    def traceparent(self) -> str:
        """Return the span of what started the plan, or an empty text if that was not traced."""

    def hold(self, has_begun: bool) -> Bound:
        """Return the query that locks the plan, and finds it only while an action of it may begin here, or go on."""

    def hold_plan(self) -> Bound:
        """Return the query that locks the plan, and finds it only while the applier of the lease has it.

        Unlike `hold`, it finds a plan of which no action may begin.
        """

    def look(self, action: Any) -> CurrentState | None:
        """Read the row of an action in one query; None if the action was deleted."""


class Slot:
    """The slot of one running action. While the action is suspended, another action may use the slot.

    This base class has no slot: the whole process waits, and no watchdog fails the action.
    """

    def begin(self, attempt: int) -> None:
        """Start the timeout of the action; the checks before it, also after a crash, are over.

        Args:
            attempt: the number of the attempt that begins, and that the watchdog may fail.

        Raises:
            LeaseLost: the watchdog has failed the action before that.
        """

    def vacated(self) -> AbstractContextManager[None]:
        """Return a context manager that releases the slot while the action is suspended."""
        return nullcontext()

    def wait(self, seconds: float) -> None:
        """Wait ``seconds`` with a suspended action.

        Raises:
            LeaseLost: the worker ends; the action stays suspended until another worker takes it over.
        """
        time.sleep(seconds)


NO_SLOT = Slot()
