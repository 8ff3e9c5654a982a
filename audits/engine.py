"""The decision engine: takes audits that wait, and answers each with an action plan."""

import time
from datetime import timedelta

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from structlog.contextvars import bound_contextvars

from audits.answers import answer
from audits.models import Audit
from audits.plugins import synchronize
from plans.models import ActionPlan
from watcher_site.heartbeat import Heartbeat
from watcher_site.models import Service
from watcher_site.refusals import Refused
from watcher_site.state import ConcurrentTransition

log = structlog.get_logger(__name__)

# How often, in seconds, the engine looks for plans that nobody started in time.
EXPIRY_PERIOD = 60


class DecisionEngine:
    """One process's share of the audits, one audit at a time; for more at once, start more engines.

    `run` is the loop; each step of it can be called alone. The table is the queue: an engine may be killed at any
    moment, and the audit that it held is run again by another, as an audit leaves nothing behind before its end.
    """

    def __init__(self) -> None:
        self.stopping = False
        self.next_expiry = 0.0
        self.register()

    def register(self) -> None:
        self.service = Service.register(Service.DECISION_ENGINE, settings.HOST)
        self.heartbeat = Heartbeat(self.service)

    def run(self, once: bool = False) -> None:
        """Answer audits until told to stop, or with ``once`` until none waits and none is orphaned."""
        self.heartbeat.start()
        log.info("decision engine started", host=settings.HOST)
        try:
            synchronize()
            while not self.stopping:
                found = self.work() if once else self.work_or_wait()
                if once and not found:
                    break
        finally:
            self.heartbeat.stop()
            self.service.retire()
            log.info("decision engine stopped", host=settings.HOST)

    def work_or_wait(self) -> bool:
        """Do one step, and rest when there was nothing to do or no database to ask."""
        try:
            found = self.work()
        except (InterfaceError, OperationalError) as problem:
            log.warning("database lost", problem=str(problem))
            connection.close()
            found = False
        if not found:
            time.sleep(settings.POLL_INTERVAL)
        return found

    def work(self) -> bool:
        """Answer one audit, and say whether there was one."""
        if self.heartbeat.lost:
            self.renew()
        self.expire()
        audit = self.take()
        if audit:
            self.answer(audit)
        return audit is not None

    def renew(self) -> None:
        """Begin anew under another row: this process slept so long that its row and its audit are others'."""
        log.warning("lease lost")
        self.register()
        self.heartbeat.start()

    def expire(self) -> None:
        """Supersede the plans that nobody started in time."""
        if time.monotonic() < self.next_expiry or not settings.ACTION_PLAN_EXPIRY:
            return
        self.next_expiry = time.monotonic() + EXPIRY_PERIOD
        hours = f"{settings.ACTION_PLAN_EXPIRY / timedelta(hours=1):g} hours"
        expired = ActionPlan.objects.older_than(settings.ACTION_PLAN_EXPIRY).supersede(
            f"Action plan was superseded, as it was not started within {hours}.",
            f"Action was cancelled, as its action plan was not started within {hours}.",
        )
        if expired:
            log.info("plans expired", plans=expired)

    def take(self) -> Audit | None:
        """Make an audit this engine's own: one that a lost database interrupted, an orphan, or one that waits."""
        return Audit.objects.running_under(self.service).first() or self.adopt() or self.claim()

    def adopt(self) -> Audit | None:
        for key in Audit.objects.orphaned().order_by("pk").values_list("pk", flat=True):
            if Audit.objects.filter(pk=key).adopt(self.service):
                audit: Audit = Audit.objects.get(pk=key)
                log.info("audit taken over", audit=str(audit.uuid))
                return audit
        return None

    def claim(self) -> Audit | None:
        for audit in Audit.objects.waiting():
            audit.start(self.service)
            try:
                audit.save_state()
            except ConcurrentTransition:
                continue  # Another engine, or a cancel, was first.
            claimed: Audit = audit
            return claimed
        return None

    def answer(self, audit: Audit) -> None:
        """Answer an audit of this engine's own; whatever goes wrong ends in the audit, not in the engine."""
        with bound_contextvars(audit=str(audit.uuid)):
            log.info("audit started")
            try:
                answer(audit)
            except ConcurrentTransition:
                log.info("audit was cancelled or taken over")
            except Refused as refusal:
                self.fail(audit, str(refusal))
            except (InterfaceError, OperationalError):
                raise  # It stays this engine's own, and is taken again.
            except Exception as problem:
                # What it says may be a secret, and is for the log alone.
                log.exception("audit broke off")
                self.fail(audit, type(problem).__name__)

    def fail(self, audit: Audit, reason: str) -> None:
        # The instance in hand may be ahead of the table.
        own = Audit.objects.running_under(self.service).filter(pk=audit.pk).first()
        if own is None:
            return
        own.fail(reason)
        try:
            own.save_state()
        except ConcurrentTransition:
            log.info("audit was cancelled or taken over")
        else:
            log.warning("audit failed", reason=reason)
