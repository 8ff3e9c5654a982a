"""The interface of receivers of notifications, and the results of deliveries.

A receiver either sends several lines in parallel, each one notification at a time, or batches: the first notification
of each line, then the second of each, and so on. If a notification of a batch is refused, no later one of its line was
sent.
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
from watcher_site.notifications.messages import NOT_SENT
from watcher_site.request_context import within_request

log = structlog.get_logger(__name__)
Line = Sequence[PendingDelivery]


class Undelivered(Exception):
    """A receiver refused one notification, but may accept others. The message is shown to users."""

    def __init__(self, message: str, pause: float = 0) -> None:
        super().__init__(message)
        self.pause = pause
        """The minimum number of seconds before the next attempt, if the receiver requests one."""


class Unreachable(Exception):
    """A receiver does not respond, so that deliveries to it are paused."""


Problem = Undelivered | Unreachable


@dataclass
class Outcome:
    """The progress of a line: the deliveries that were sent, and the remaining ones."""

    delivered: list[PendingDelivery] = field(default_factory=list)
    left: list[PendingDelivery] = field(default_factory=list)
    problem: Problem | None = None
    """The result of the first remaining delivery, if it was tried."""

    @classmethod
    def of(cls, line: Line) -> "Outcome":
        """Return the outcome of a line before its first delivery is sent."""
        return cls(left=[*line])

    @property
    def can_continue(self) -> bool:
        return bool(self.left) and self.problem is None

    def record_result(self, problem: Problem | None) -> None:
        """Record the result of the next delivery: None if it was sent."""
        if problem is None:
            self.delivered.append(self.left.pop(0))
        self.problem = problem


class Receiver(ABC):
    """One receiver."""

    batch: ClassVar[int]
    """The number of notifications that are sent at once. This many may be sent again after a relay was killed."""
    warning: str | None = None
    """The problem with the last notification that was delivered, such as an address that was refused."""

    @abstractmethod
    def send_lines(self, lines: Sequence[Line], can_continue: Callable[[], bool]) -> list[Outcome]:
        """Send lines, each in order until a delivery fails, and return the outcome of each.

        Args:
            can_continue: returns whether another delivery may begin.
        """

    def close(self) -> None:  # noqa: B027 (a receiver may hold nothing)
        """noqa: B027 (not every receiver has resources)"""


def unsendable(problem: Exception) -> Undelivered:
    """Return the result of a notification that could not be serialized, which is not the receiver's fault.

    It must not block its line indefinitely.
    """
    log.error("notification could not be sent", exc_info=problem)
    return Undelivered(NOT_SENT.fill(name=type(problem).__name__))


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

    def send_lines(self, lines: Sequence[Line], can_continue: Callable[[], bool]) -> list[Outcome]:
        unanswered: list[Unreachable] = []
        # If the receiver does not respond in one thread, the others stop.
        may_begin = lambda: not unanswered and can_continue()  # noqa: E731
        return list(self.pool.map(partial(self.send_line, can_continue=may_begin, unanswered=unanswered), lines))

    def send_line(self, line: Line, can_continue: Callable[[], bool], unanswered: list[Unreachable]) -> Outcome:
        outcome = Outcome.of(line)
        while outcome.can_continue and can_continue():
            outcome.record_result(self.try_to_send(outcome.left[0].notification))
            if isinstance(outcome.problem, Unreachable):
                unanswered.append(outcome.problem)
        return outcome

    def try_to_send(self, notification: SentNotification) -> Problem | None:
        with within_request(notification.request_id):
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
        """Send notifications within the timeout of the site.

        Returns:
            The problem of each notification, or None if it was delivered.
        """

    def send_lines(self, lines: Sequence[Line], can_continue: Callable[[], bool]) -> list[Outcome]:
        outcomes = [Outcome.of(line) for line in lines]
        while can_continue() and not any(isinstance(outcome.problem, Unreachable) for outcome in outcomes):
            batch = [outcome for outcome in outcomes if outcome.can_continue]
            if not batch:
                break
            results = self.send_batch([outcome.left[0].notification for outcome in batch])
            for outcome, problem in zip(batch, results, strict=True):
                outcome.record_result(problem)
        return outcomes
