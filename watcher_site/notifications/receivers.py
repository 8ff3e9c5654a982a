"""The interface of receivers of notifications, and the results of deliveries.

A receiver takes one notification at a time from each line, from several lines in parallel, or many notifications at
once: the first of each line, then the second of each, and so on. If a notification of a batch is refused, no later one
of its line was sent.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import ClassVar

import structlog
from django.conf import settings

from watcher_site.notifications.deliveries import PendingDelivery, SentNotification

log = structlog.get_logger(__name__)
Line = Sequence[PendingDelivery]


class Undelivered(Exception):
    """A receiver refused one notification; others may still be sent to it. The message is for people."""

    def __init__(self, message: str, pause: float = 0) -> None:
        super().__init__(message)
        self.pause = pause
        """The least number of seconds before the next attempt, if the receiver names one."""


class Unreachable(Exception):
    """A receiver does not answer, so nothing is sent to it for some time."""


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
        """Return the outcome of a line before its first delivery is sent."""
        return cls(left=[*line])

    @property
    def goes_on(self) -> bool:
        return bool(self.left) and self.problem is None

    def record_result(self, problem: Problem | None) -> None:
        """Record the result of the next delivery: None if it was sent."""
        if problem is None:
            self.delivered.append(self.left.pop(0))
        self.problem = problem


class Receiver(ABC):
    """One receiver."""

    batch: ClassVar[int]
    """How many notifications are carried at once: where a relay is killed, so many may be sent again."""

    @abstractmethod
    def send_lines(self, lines: Sequence[Line], goes_on: Callable[[], bool]) -> list[Outcome]:
        """Send lines, each in order until a delivery fails, and return the outcome of each.

        Args:
            goes_on: says whether anything more may be begun.
        """

    def close(self) -> None:  # noqa: B027 (a receiver may hold nothing)
        """Close connections and other resources."""


def unsendable(problem: Exception) -> Undelivered:
    """Return the result of a notification that could not be serialized, which is not a fault of the receiver.

    The next of its line must not wait for it for ever.
    """
    log.error("notification could not be sent", exc_info=problem)
    return Undelivered(f"It could not be sent: {type(problem).__name__}.")


class SequentialReceiver(Receiver):
    """A receiver whose `send` is called in several threads at once."""

    batch = 200

    @abstractmethod
    def send(self, notification: SentNotification) -> None:
        """Send a notification within the timeout of the site.

        Raises:
            Undelivered, Unreachable: it was not delivered.
        """

    @cached_property
    def pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(settings.RELAY_CONNECTIONS, thread_name_prefix="receiver")

    def send_lines(self, lines: Sequence[Line], goes_on: Callable[[], bool]) -> list[Outcome]:
        silences: list[Unreachable] = []
        # What fell silent in one thread needs to be waited for in no other.
        may_begin = lambda: not silences and goes_on()  # noqa: E731
        return list(self.pool.map(partial(self.send_line, goes_on=may_begin, silences=silences), lines))

    def send_line(self, line: Line, goes_on: Callable[[], bool], silences: list[Unreachable]) -> Outcome:
        outcome = Outcome.of(line)
        while outcome.goes_on and goes_on():
            outcome.record_result(self.try_to_send(outcome.left[0].notification))
            if isinstance(outcome.problem, Unreachable):
                silences.append(outcome.problem)
        return outcome

    def try_to_send(self, notification: SentNotification) -> Problem | None:
        try:
            self.send(notification)
        except (Undelivered, Unreachable) as problem:
            return problem
        except Exception as problem:
            return unsendable(problem)
        return None

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)


class BatchedReceiver(Receiver):
    batch = 1000

    @abstractmethod
    def send_batch(self, notifications: Sequence[SentNotification]) -> Sequence[Problem | None]:
        """Send notifications within the timeout of the site, and return the result of each.

        None says that it was delivered.
        """

    def send_lines(self, lines: Sequence[Line], goes_on: Callable[[], bool]) -> list[Outcome]:
        outcomes = [Outcome.of(line) for line in lines]
        while goes_on() and not any(isinstance(outcome.problem, Unreachable) for outcome in outcomes):
            batch = [outcome for outcome in outcomes if outcome.goes_on]
            if not batch:
                break
            results = self.send_batch([outcome.left[0].notification for outcome in batch])
            for outcome, problem in zip(batch, results, strict=True):
                outcome.record_result(problem)
        return outcomes
