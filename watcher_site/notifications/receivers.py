"""`Receiver`: whom a relay tells, and how it says that it could not."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import structlog

from watcher_site.notifications.rows import PendingDelivery

log = structlog.get_logger(__name__)
Line = Sequence[PendingDelivery]


class Undelivered(Exception):
    """A receiver refused one notification: others may still come to it. The message is for people to read."""

    def __init__(self, message: str, pause: float = 0) -> None:
        super().__init__(message)
        self.pause = pause
        """The least number of seconds before the next attempt, if the receiver names one."""


class Unreachable(Exception):
    """A receiver does not answer: nothing comes to it for now."""


Problem = Undelivered | Unreachable


@dataclass
class Outcome:
    """The progress of a line: the deliveries that were sent, and those that are left."""

    delivered: list[PendingDelivery] = field(default_factory=list)
    left: list[PendingDelivery] = field(default_factory=list)
    problem: Problem | None = None
    """What became of the first that is left, if anything."""

    @classmethod
    def of(cls, line: Line) -> "Outcome":
        """Return that of a line of which nothing was sent yet."""
        return cls(left=[*line])

    @property
    def goes_on(self) -> bool:
        return bool(self.left) and self.problem is None

    def note(self, problem: Problem | None) -> None:
        """Note what became of the first that is left: None, if it arrived."""
        if problem is None:
            self.delivered.append(self.left.pop(0))
        self.problem = problem


class Receiver(ABC):
    """One receiver."""

    batch: ClassVar[int]
    """How many notifications are carried at once: where a relay is killed, so many may be sent again."""

    @abstractmethod
    def send_lines(self, lines: Sequence[Line], goes_on: Callable[[], bool]) -> list[Outcome]:
        """Deliver lines, each in its order and up to the first that is not delivered, and return how far each came.

        Args:
            goes_on: says whether anything more may be begun.
        """

    def close(self) -> None:  # noqa: B027 (a receiver may hold nothing)
        """Close connections and other resources that it holds."""


def unsendable(problem: Exception) -> Undelivered:
    """Return what becomes of a notification that could not even be written, which is no fault of the receiver's.

    The next of its line must not wait for it for ever.
    """
    log.error("notification could not be sent", exc_info=problem)
    return Undelivered(f"It could not be sent: {type(problem).__name__}.")
