"""The thread that delivers to one receiver, so that a slow receiver does not delay others."""

import time
from collections.abc import Callable, Sequence
from threading import Event, Thread

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from watcher_site.models import Service, Subscription
from watcher_site.monitoring import metrics
from watcher_site.notifications import deliveries
from watcher_site.notifications.deliveries import PendingDelivery
from watcher_site.notifications.receivers import Outcome, Receiver, Undelivered, Unreachable
from watcher_site.processes.worker import LOST_DATABASE
from watcher_site.request_context import within_request

log = structlog.get_logger(__name__)
# The longest pause, in seconds, before the next attempt to reach a broker that did not respond.
LONGEST_PAUSE = 30.0


class DeliveryThread:
    """The connections and the thread with which a relay sends to one receiver.

    The thread runs while deliveries are pending.
    """

    def __init__(
        self,
        subscription: Subscription | None,
        receiver: Receiver,
        relay: Service,
        holds: Callable[[], bool],
        wake: Event,
    ) -> None:
        self.subscription, self.receiver, self.relay, self.holds, self.wake = (
            subscription,
            receiver,
            relay,
            holds,
            wake,
        )
        self.log = log.bind(receiver=str(subscription or "broker"))
        self.stopping = False
        self.failures = 0
        self.paused_until = 0.0
        self.thread: Thread | None = None

    @property
    def key(self) -> int | None:
        return self.subscription.pk if self.subscription else None

    @property
    def is_running(self) -> bool:
        return self.thread is not None and self.thread.is_alive()

    @property
    def is_free(self) -> bool:
        return not self.is_running and time.monotonic() >= self.paused_until

    def start(self) -> None:
        """Start a thread that sends the pending deliveries, and ends when no more can be sent."""
        self.thread = Thread(target=self.run, name="delivery", daemon=True)
        self.thread.start()

    def run(self) -> None:
        try:
            while self.can_continue() and self.deliver_batch():
                pass
        except LOST_DATABASE as problem:
            metrics.database_errors.labels("delivery").inc()
            self.log.warning("database lost", problem=str(problem))
            self.pause(settings.POLL_INTERVAL)
            self.release()
        except Exception:
            # An error of any kind must not affect other receivers.
            self.log.exception("delivery thread failed")
            self.pause(LONGEST_PAUSE)
            self.release()
        finally:
            connection.close()
            self.wake.set()

    def release(self) -> None:
        """Release the deliveries that this thread owns. No other relay would claim them while this one is alive."""
        while self.can_continue():
            try:
                connection.close()
                deliveries.release_all(self.key, self.relay)
            except LOST_DATABASE:
                time.sleep(settings.POLL_INTERVAL)
            else:
                return

    def deliver_batch(self) -> bool:
        """Send some deliveries, and return whether to continue without waiting."""
        taken = deliveries.claim_deliveries(self.key, self.relay, self.receiver.batch)
        if not taken:
            return False
        outcomes = self.receiver.send_lines(taken, self.can_continue)
        self.write(outcomes)
        return not any(isinstance(outcome.problem, Unreachable) for outcome in outcomes)

    def can_continue(self) -> bool:
        return not self.stopping and self.holds()

    def write(self, outcomes: Sequence[Outcome]) -> None:
        """Store the results of some deliveries."""
        delivered = [delivery for outcome in outcomes for delivery in outcome.delivered]
        refusals = [
            (outcome.left[0], outcome.problem) for outcome in outcomes if isinstance(outcome.problem, Undelivered)
        ]
        with transaction.atomic():
            # In one transaction, because the owner of the first delivery of a line owns the line.
            deliveries.remove_delivered(delivered)
            retried = 0
            for delivery, problem in refusals:
                if deliveries.retry_or_give_up(delivery, str(problem), problem.pause):
                    retried += 1
                else:
                    with within_request(delivery.notification.request_id):
                        self.log.warning("notification given up", event_type=delivery.notification.event_type)
            deliveries.release([outcome.left[0] for outcome in outcomes if outcome.left], self.relay)
        self.count("delivered", len(delivered))
        self.count("retried", retried)
        self.count("given_up", len(refusals) - retried)
        unanswered = [
            (outcome.left[0], outcome.problem) for outcome in outcomes if isinstance(outcome.problem, Unreachable)
        ]
        refused = refusals[0][1] if refusals else None
        if unanswered:
            self.pause_after_no_answer(str(unanswered[0][1]), [delivery for delivery, _ in unanswered])
        elif delivered:
            self.failures = 0
            if self.key is not None:
                warning = str(refused) if refused else self.receiver.warning
                deliveries.record_success(self.key, timezone.now(), warning)
        elif refused and self.key is not None:
            deliveries.record_rejection(self.key, str(refused))

    def count(self, outcome: str, number: int) -> None:
        """Count deliveries in the metrics by the kind of the receiver, because the number of names is not limited."""
        kind = self.subscription.kind if self.subscription else "broker"
        metrics.deliveries.labels(kind, outcome).inc(number)

    def pause_after_no_answer(self, problem: str, tried: Sequence[PendingDelivery]) -> None:
        self.failures += 1
        self.count("unanswered", len(tried))
        if self.key is None:
            metrics.broker_errors.labels("notifications").inc()
            # Deliveries to the broker never become dead letters.
            pause = min(2.0 ** (self.failures - 1), LONGEST_PAUSE)
            self.pause(pause)
            deliveries.record_problem(tried, problem)
            self.log.warning("broker does not answer", pause=pause)
            return
        given_up = deliveries.record_no_answer(self.key, problem, tried)
        self.count("given_up", given_up)
        self.log.warning("receiver does not answer", problem=problem, given_up=given_up)

    def pause(self, seconds: float) -> None:
        self.paused_until = time.monotonic() + seconds

    def stop(self) -> None:
        """Stop the thread after the current message."""
        self.stopping = True

    def close(self, timeout: float) -> None:
        """Wait up to ``timeout`` seconds for the current message, and close the connections."""
        if self.thread:
            self.thread.join(timeout)
        self.receiver.close()
