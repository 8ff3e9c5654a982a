"""A worker's right to work at an action, and what it looks at to see whether it still has it."""

from dataclasses import dataclass
from typing import Any, Protocol

from watcher_site.database.statements import Bound


@dataclass(frozen=True)
class Standing:
    """The current row of a running action, and of its plan."""

    state: str
    attempt: int
    control: str | None
    is_held: bool
    """Whether the plan is under way, and the action in the hands that the lease names."""
    is_being_cancelled: bool
    """Whether the plan is."""


class Lease(Protocol):
    """A worker's right to work at the actions of a plan: some numbers and texts, which any process can be sent."""

    @property
    def host(self) -> str:
        """Return the name of the machine that does the work."""

    @property
    def owner(self) -> int | None:
        """The primary key of the service that does the work: in its hands the actions are meanwhile."""

    def hold(self, has_begun: bool) -> Bound:
        """Return the query that locks the plan, and finds it only while an action of it may begin here, or go on."""

    def hold_plan(self) -> Bound:
        """Return the query that locks the plan, and finds it only while it is with the applier that has the work done.

        It does so also while nothing of it may begin.
        """

    def look(self, action: Any) -> Standing | None:
        """Read the row of an action in one query; None if the action was deleted."""
