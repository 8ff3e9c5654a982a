"""The decision engine, which runs audits, and periodic tasks."""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import structlog
from django.conf import settings
from django.utils import timezone
from structlog.contextvars import bound_contextvars

from audits import messages
from audits.engine.capacity import request_capacity_audit
from audits.engine.purge import PurgeTask
from audits.engine.run import fail, run_strategy
from audits.messages import ACTION_EXPIRED, PLAN_EXPIRED
from audits.models import Audit
from audits.models.querysets import AuditQuerySet
from audits.plugins import synchronize as synchronize_plugins
from cluster.drivers.base import CloudError
from cluster.operations.synchronization import synchronize
from plans.models import ActionPlan
from watcher_site.accounts.login_limits import record_summaries
from watcher_site.models import Service
from watcher_site.monitoring.metrics import audit_run_delay, audit_run_seconds
from watcher_site.monitoring.tracing import tracing
from watcher_site.processes.worker import LOST_DATABASE, NOT_OF_ONE_RECORD, Worker
from watcher_site.refusals import Refused
from watcher_site.request_context import within_request
from watcher_site.state_machine import ConcurrentTransition

log = structlog.get_logger(__name__)

# The interval, in seconds, at which expired plans are superseded.
EXPIRY_PERIOD = 60
# The interval, in seconds, of searches for PENDING servers.
SEARCH_PERIOD = 30
# The interval, in seconds, at which ended windows of failed logins are recorded.
SUMMARY_PERIOD = 60
# The number of interruptions by the database after which the run of an audit fails.
MOST_INTERRUPTIONS = 3
# The number of waiting audits that are read before one of them is claimed.
CANDIDATES = 20


class DecisionEngine(Worker):
    """A process that runs one audit at a time. Several engines run audits in parallel.

    If it is killed, another engine runs its audit again, because an audit writes its results in one transaction at
    its end.
    """

    kind = Service.DECISION_ENGINE

    def __init__(self, host: str | None = None) -> None:
        self.next_expiry = self.next_synchronization = self.next_capacity_search = self.next_summaries = 0.0
        self.interruptions: Counter[int] = Counter()
        self.found = self.looked = False
        self.purge = PurgeTask(is_stopping=lambda: self.stopping)
        # A turn includes a reading of the cloud and the run of an audit.
        self.longest_turn = settings.LONGEST_AUDIT
        super().__init__(host)

    def prepare(self) -> None:
        synchronize_plugins()

    @property
    def is_idle(self) -> bool:
        return self.looked and not (self.found or self.purge.is_running)

    def step(self) -> None:
        self.found, self.looked = self.run_next_audit(), True

    def rest(self) -> None:
        if not self.found:
            time.sleep(settings.POLL_INTERVAL)

    def await_database(self) -> None:
        self.found = self.looked = False

    def stop(self) -> None:
        try:
            with suppress(*LOST_DATABASE):
                self.purge.release()
        finally:
            super().stop()

    def run_next_audit(self) -> bool:
        """Run the next audit, and return whether there was one."""
        if self.heartbeat.lost:
            self.renew()
        self.run_task(self.supersede_expired_plans)
        self.run_task(self.synchronize)
        self.run_task(self.search_capacity)
        self.run_task(self.record_failed_logins)
        self.run_task(self.end_series)
        self.run_task(self.purge.advance)
        audit = self.next_audit()
        if audit:
            self.run_audit(audit)
        return audit is not None

    def run_task(self, task: Callable[[], None]) -> None:
        """Run a periodic task and log its errors, so that a failed task stops no audit."""
        try:
            task()
        except NOT_OF_ONE_RECORD:
            raise
        except Exception:
            log.exception("task of the decision engine failed", task=task.__qualname__)

    def end_series(self) -> None:
        """End the continuous audits whose end time has passed."""
        Audit.objects.end_series(timezone.now())

    def supersede_expired_plans(self) -> None:
        """Supersede the plans that were not started in time."""
        if time.monotonic() < self.next_expiry or not settings.ACTION_PLAN_EXPIRY:
            return
        self.next_expiry = time.monotonic() + EXPIRY_PERIOD
        hours = f"{settings.ACTION_PLAN_EXPIRY / timedelta(hours=1):g}"
        expired = ActionPlan.objects.older_than(settings.ACTION_PLAN_EXPIRY).supersede(
            PLAN_EXPIRED.fill(hours=hours),
            ACTION_EXPIRED.fill(hours=hours),
        )
        if expired:
            log.info("plans expired", plans=expired)

    def synchronize(self) -> None:
        """Read a mirrored cloud if no engine has done so for some time."""
        interval = settings.SYNC_INTERVAL
        if time.monotonic() < self.next_synchronization or not interval:
            return
        self.next_synchronization = time.monotonic() + interval.total_seconds()
        try:
            synchronize(interval, wait=False)
        except CloudError as problem:
            log.warning("cloud could not be read", problem=str(problem))

    def search_capacity(self) -> None:
        """Request capacity for PENDING servers at intervals, in case the process that requests it was lost."""
        if time.monotonic() >= self.next_capacity_search:
            self.next_capacity_search = time.monotonic() + SEARCH_PERIOD
            try:
                request_capacity_audit()
            except Refused as refusal:
                log.warning("capacity audit could not run", reason=str(refusal))

    def record_failed_logins(self) -> None:
        """Record the number of failed logins of each window that is over as a history event."""
        if time.monotonic() >= self.next_summaries:
            self.next_summaries = time.monotonic() + SUMMARY_PERIOD
            record_summaries()

    def next_audit(self) -> Audit | None:
        """Return an audit that this engine owns: an interrupted one, or a waiting one that it claims."""
        return Audit.objects.select_related("strategy", "goal").running_under(self.service).first() or self.claim(
            Audit.objects.all()
        )

    def claim(self, audits: AuditQuerySet) -> Audit | None:
        """Claim the audit that has waited longest and that no other engine claims at the same time."""
        now = timezone.now()
        while keys := audits.waiting(now).oldest_first().values_list("pk", "request_id")[:CANDIDATES]:
            for key, request_id in keys:
                with within_request(request_id):
                    is_claimed = Audit.objects.filter(pk=key).claim(self.service, now)
                if is_claimed:
                    claimed: Audit = Audit.objects.select_related("strategy", "goal").get(pk=key)
                    due = claimed.next_run_time or claimed.created_at
                    audit_run_delay.observe(max(0.0, (now - due).total_seconds()))
                    return claimed
        return None

    def run_audit(self, audit: Audit) -> None:
        """Run an audit that this engine owns. Errors fail the audit and not the engine."""
        attributes = {
            "watcher.audit": str(audit.uuid),
            "watcher.audit_type": audit.audit_type,
            "watcher.request_id": audit.request_id,
        }
        with (
            bound_contextvars(audit=str(audit.uuid)),
            within_request(audit.request_id),
            tracing.span("run audit", attributes) as span,
        ):
            log.info("audit started", audit_type=audit.audit_type)
            began, outcome = time.monotonic(), "failed"
            try:
                run_strategy(audit)
                outcome = "succeeded"
            except ConcurrentTransition:
                outcome = "interrupted"
                log.info("audit was cancelled, suspended or taken over")
            except Refused as refusal:
                self.fail(audit, str(refusal))
            except LOST_DATABASE:
                if self.may_retry(audit):
                    outcome = "interrupted"
                    raise
                self.fail(Audit.objects.get(pk=audit.pk), messages.RUN_LOST_DATABASE.fill(number=MOST_INTERRUPTIONS))
            except Exception as problem:
                # The message may contain secrets, and is only logged.
                log.exception("audit failed unexpectedly")
                self.fail(audit, type(problem).__name__)
            finally:
                strategy = audit.strategy.name if audit.strategy else audit.goal.name
                audit_run_seconds.labels(strategy, outcome).observe(time.monotonic() - began)
                span.set("watcher.strategy", strategy)
                if outcome == "failed":
                    span.fail(outcome)

    def may_retry(self, audit: Audit) -> bool:
        """Return whether this engine runs an audit again after the loss of the database."""
        self.interruptions[audit.pk] += 1
        if self.interruptions[audit.pk] < MOST_INTERRUPTIONS:
            return True
        del self.interruptions[audit.pk]
        return False

    def fail(self, audit: Audit, reason: str) -> None:
        try:
            fail(audit, reason)
        except ConcurrentTransition:
            log.info("audit was cancelled or taken over")
        except NOT_OF_ONE_RECORD:
            raise
        except Exception:
            log.exception("audit failed without notifications", reason=reason)
            Audit.objects.running_under(self.service).filter(pk=audit.pk).fail_silently(reason)
        else:
            log.warning("audit failed", reason=reason)
