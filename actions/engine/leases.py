"""The interfaces of the lease and the slot of an action, which its execution uses."""

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
    """Whether the plan is running and the worker of the lease owns the action."""
    is_being_cancelled: bool
    """Whether the plan is being cancelled."""


class Lease(Protocol):
    """The right of a worker to execute the actions of a plan. Its values can be sent to another process."""

    @property
    def host(self) -> str:
        """Return the name of the machine that executes the actions."""

    @property
    def owner(self) -> int | None:
        """Return the primary key of the service that executes and owns the actions."""

    @property
    def request_id(self) -> str:
        """Return the id of the request that started the plan, or an empty text."""

    @property
    def plan_uuid(self) -> str:
        """Return the UUID of the plan, for traces."""

    @property
    def traceparent(self) -> str:
        """Return the span that started the plan, or an empty text if it was not traced."""

    def hold(self, has_begun: bool) -> Bound:
        """Return the query that locks the plan if an action of it may begin or continue under this lease."""

    def hold_plan(self) -> Bound:
        """Return the query that locks the plan if the applier of the lease owns it.

        Unlike `hold`, it also finds a plan whose actions may not begin.
        """

    def look(self, action: Any) -> CurrentState | None:
        """Return the current row of an action, read with one query, or None if the action was deleted."""


class Slot:
    """The slot of one running action. While the action is suspended, another action may use the slot.

    This base class has no slot: the whole process waits, and no watchdog fails the action.
    """

    def begin(self, attempt: int) -> None:
        """Start the timeout of the action, after the checks that precede it.

        Args:
            attempt: the number of the attempt, which the watchdog may fail.

        Raises:
            LeaseLost: the watchdog has already failed the action.
        """

    def vacated(self) -> AbstractContextManager[None]:
        """Return a context manager that releases the slot while the action is suspended."""
        return nullcontext()

    def wait(self, seconds: float) -> None:
        """Wait ``seconds`` with a suspended action.

        Raises:
            LeaseLost: the worker is stopping; the action remains suspended until another worker takes it over.
        """
        time.sleep(seconds)


NO_SLOT = Slot()
