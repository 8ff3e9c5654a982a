"""Receivers that take many notifications at once: the first of each line, then the second of each, and so on.

If a notification of a batch is refused, no later one of its line was sent.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence

from watcher_site.notifications.receivers import Line, Outcome, Problem, Receiver, Unreachable
from watcher_site.notifications.rows import SentNotification


class BatchedReceiver(Receiver):
    batch = 1000

    @abstractmethod
    def send_batch(self, notifications: Sequence[SentNotification]) -> Sequence[Problem | None]:
        """Deliver notifications, at the latest after the site's timeout, and return what became of each.

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
                outcome.note(problem)
        return outcomes
