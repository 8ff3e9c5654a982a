"""The record of an action's phases: what each did, written together with the action's state."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

import structlog
from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

from actions.engine.data import make_outputs_storable
from actions.engine.leases import Lease
from actions.graph.propagation import bound_to, end_dependents, takes_others
from actions.models import Action, ActionEvent
from actions.types.base import OWN_EXCEPTIONS, ActionSkipException, Interruption, explain
from actions.types.hooks import clean_up
from actions.types.locking import wake_waiting
from watcher_site import plugins
from watcher_site.database.statements import Bound, insert
from watcher_site.messages import cut
from watcher_site.outbox import payloads
from watcher_site.processes.worker import LOST_DATABASE

log = structlog.get_logger(__name__)
Result = ActionEvent.Result
UNRECORDED = "Its outcome was not recorded."


def reconnect(state: RetryCallState) -> None:
    log.warning("outcome not recorded yet", problem=str(state.outcome and state.outcome.exception()))
    if not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()


# An outcome that is lost may have to be found out by doing the action again: worth some seconds of a worker's time.
PERSISTENTLY = Retrying(
    retry=retry_if_exception_type(LOST_DATABASE),
    wait=wait_exponential(multiplier=0.1, max=1),
    stop=stop_after_delay(10),
    before_sleep=reconnect,
    reraise=True,
)


class PhaseRecord:
    """The writes of one worker for one action."""

    phase: ActionEvent
    """The one that was begun last."""
    began: datetime | None = None
    """When the first was begun."""

    def __init__(self, action: Action, lease: Lease) -> None:
        self.action, self.lease = action, lease
        self.log = log.bind(action=str(action.uuid), action_type=action.action_type)

    def begin(self, event: str) -> ActionEvent:
        now = timezone.now()
        self.began = self.began or now
        self.phase = ActionEvent(action=self.action, event=event, start_time=now, host=self.lease.host)
        return self.phase

    def finish(self, phase: ActionEvent, result: str, details: str | None = None) -> None:
        phase.finish_time, phase.result, phase.details = timezone.now(), result, details and cut(details)

    def perform(self, phase: ActionEvent, work: Callable[[], None]) -> BaseException | None:
        """Do what the phase is for, and return what went wrong, even an exit: it ends the action, not the worker.

        A lost database is nobody's failure: it is raised.
        """
        try:
            work()
        except (*LOST_DATABASE, Interruption):
            raise
        except BaseException as problem:
            self.tell(phase, problem)
            self.finish(phase, Result.ERROR, explain(problem))
            # What comes after it, such as a look at what is left, may fail as well.
            self.action.fault = self.action.fault or payloads.describe_fault(problem, explain(problem))
            return problem
        self.finish(phase, Result.SUCCESS)
        return None

    def tell(self, phase: ActionEvent, problem: BaseException) -> None:
        """Log what went wrong: where it comes from only of what nobody foresaw."""
        if isinstance(problem, ActionSkipException):
            return
        unforeseen = None if isinstance(problem, OWN_EXCEPTIONS) else problem
        reason = explain(problem, is_for_log=True)
        self.log.warning("action phase failed", phase=phase.event, problem=reason, exc_info=unforeseen)

    def end(self, *phases: ActionEvent, **how: Any) -> bool:
        """Write the action's end as `write` does, for some seconds even against a database that does not answer."""
        written: bool = PERSISTENTLY(self.write, *phases, **how)
        self.log.info("action ended", state=self.action.state, message=self.action.status_message)
        self.wake_waiting()
        return written

    def wake_waiting(self) -> None:
        """Make the actions due that wait for a lock of this one, if it has ended."""
        action_type = plugins.load("ACTION_TYPES").get(self.action.action_type)
        is_over = self.action.state in Action.FINAL and self.action.derived_from_id is None
        if is_over and action_type is not None and action_type.takes_locks:
            # If this fails, they try again when their pauses are over.
            with suppress(*LOST_DATABASE):
                wake_waiting(self.action.uuid)

    def write(
        self,
        *phases: ActionEvent,
        hold: bool = False,
        orphans: bool = False,
        abandons: bool = False,
        guards: Mapping[str, Any] | None = None,
        beside: Bound | None = None,
        records: Sequence[Model] = (),
    ) -> bool:
        """Commit the action's new state and the phases together.

        Args:
            hold: whether the plan must be ours, and is locked meanwhile.
            orphans: whether phases that a lost worker left open are closed.
            abandons: whether the action ends without its type's own clean-up, so that the hook for that is called.
            guards: values by column that the action's row must still have.
            beside: a query that must find a row, if the plan is held.
            records: new rows of other models.

        Raises:
            ConcurrentTransition: the action is no longer as this worker left it, its plan may not be worked on, or the
                query found nothing.
        """
        make_outputs_storable(self.action)
        new = [phase for phase in phases if phase.pk is None]
        for phase in phases:
            phase.attempt = self.action.attempt
        try:
            with self.settled(abandons):
                self.write_together((*phases, *records), self.held(beside) if hold else None, orphans, guards)
        except BaseException:
            for phase in new:
                phase.pk = None  # It was rolled back.
            raise
        return True

    @contextmanager
    def settled(self, abandons: bool) -> Iterator[None]:
        """Call the clean-up hook of an abandoned action in the transaction that ends the action."""
        if not abandons:
            yield
            return
        with transaction.atomic():
            clean_up(self.action)
            yield

    def write_together(
        self, records: Sequence[Model], condition: Bound | None, orphans: bool, guards: Mapping[str, Any] | None
    ) -> None:
        takes = takes_others(self.action)
        if not orphans and not takes:
            self.action.save_state(*records, condition=condition, guards=guards)
            return
        with transaction.atomic():
            bound = bound_to(self.action) if takes else Action.objects.none()
            if orphans:
                self.close_orphans()
            self.action.save_state(*records, condition=condition, guards=guards)
            if takes and (number := end_dependents(self.action, bound)):
                self.log.info("dependents ended", number=number, state=self.action.state)

    def held(self, beside: Bound | None = None) -> Bound:
        return self.lease.hold(has_begun=self.action.values_read["state"] != Action.State.PENDING).beside(beside)

    def write_beside(self, phase: ActionEvent) -> bool:
        """Write the beginning or the end of a phase that leaves the state as it is.

        Says whether it may begin; if not, nothing is written. What was done is recorded, whatever became of the plan
        meanwhile. A new phase closes those that were left open.

        Raises:
            ConcurrentTransition: the action is no longer as this worker left it.
        """
        phase.attempt = self.action.attempt
        with transaction.atomic():
            if phase.pk is None and not self.lease.hold(has_begun=False).rows():
                return False
            self.action.save_state()
            if phase.pk:
                phase.save(update_fields=["finish_time", "result", "details"])
            else:
                self.close_orphans()
                insert([phase])
        return True

    def close_orphans(self) -> None:
        """End what a worker had begun to record and never ended: it, its machine or its database was lost."""
        self.action.events.filter(finish_time=None).update(
            finish_time=timezone.now(), result=Result.ERROR, details=UNRECORDED
        )
