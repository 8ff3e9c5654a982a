"""Receivers that take one notification at a time from each line, from several lines in parallel."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial

from django.conf import settings

from watcher_site.notifications.receivers import Line, Outcome, Problem, Receiver, Undelivered, Unreachable, unsendable
from watcher_site.notifications.rows import SentNotification


class SequentialReceiver(Receiver):
    """One whose `send` is called in several threads at once."""

    batch = 200

    @abstractmethod
    def send(self, notification: SentNotification) -> None:
        """Deliver a notification, at the latest after the site's timeout.

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
            outcome.note(self.try_to_send(outcome.left[0].notification))
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
