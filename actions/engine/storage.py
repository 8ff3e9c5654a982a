"""The writes of an execution: the action's state with its phases, outputs and data."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import structlog
from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

from actions.engine.leases import Lease
from actions.engine.messages import UNRECORDED
from actions.engine.phases import PhaseRecord, Result
from actions.graph.propagation import end_dependents, find_bound_actions, may_end_others
from actions.models import Action, ActionEvent
from actions.types.base import ActionFailed, LeaseLost, explain
from actions.types.hooks import clean_up
from actions.types.locking import wake_waiting
from watcher_site import plugins
from watcher_site.database.queries import Bound
from watcher_site.database.text import require_storable
from watcher_site.database.writes import insert
from watcher_site.monitoring.metrics import database_errors
from watcher_site.processes.worker import LOST_DATABASE
from watcher_site.refusals import Refused

log = structlog.get_logger(__name__)


def reconnect(state: RetryCallState) -> None:
    database_errors.labels("outcome").inc()
    log.warning("outcome not recorded yet", problem=str(state.outcome and state.outcome.exception()))
    if not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()


# If an outcome is lost, the action may have to be executed again. It is therefore worth some seconds of retries.
PERSISTENTLY = Retrying(
    retry=retry_if_exception_type(LOST_DATABASE),
    wait=wait_exponential(multiplier=0.1, max=1),
    stop=stop_after_delay(10),
    before_sleep=reconnect,
    reraise=True,
)


class StoredPhases(PhaseRecord):
    """The writes of one worker for one action: its state and the events of its phases."""

    def __init__(self, action: Action, lease: Lease) -> None:
        super().__init__(action, lease.host)
        self.lease = lease

    def end(self, *phases: ActionEvent, **how: Any) -> bool:
        """Write the action's end as `write` does, and retry for some seconds if the database does not respond."""
        written: bool = PERSISTENTLY(self.write, *phases, **how)
        self.log.info("action ended", state=self.action.state, message=self.action.status_message)
        action_type = plugins.load("ACTION_TYPES").get(self.action.action_type)
        is_over = self.action.state in Action.FINAL and self.action.derived_from_id is None
        if is_over and action_type is not None and action_type.takes_locks:
            # If this fails, the actions that wait for a lock are retried at their times.
            with suppress(*LOST_DATABASE):
                wake_waiting(self.action.uuid)
        return written

    def write(
        self,
        *phases: ActionEvent,
        hold: bool = False,
        orphans: bool = False,
        abandons: bool = False,
        guards: Mapping[str, Any] | None = None,
        conditions: Sequence[Bound] = (),
        records: Sequence[Model] = (),
    ) -> bool:
        """Commit the action's new state and the phases together.

        Args:
            hold: whether the plan is locked, and must be owned by the lease's applier.
            orphans: whether unfinished events of a lost worker are finished.
            abandons: whether the action ends without the clean-up of its type, so that the clean-up hook is called.
            guards: values by column that the action's row must still have.
            conditions: queries, each of which must find a row as well.
            records: new rows of other models.

        Raises:
            ConcurrentTransition: another process changed the action, the lease is lost, or a query found no row.
        """
        if self.action.outputs:
            make_outputs_storable(self.action)
        new = [phase for phase in phases if phase.pk is None]
        for phase in phases:
            phase.attempt = self.action.attempt
        if hold:
            conditions = (*conditions, self.held())
        try:
            if abandons or orphans or may_end_others(self.action):
                self.write_with_others((*phases, *records), conditions, guards, abandons, orphans)
            else:
                self.action.save_state(*phases, *records, conditions=conditions, guards=guards)
        except BaseException:
            for phase in new:
                phase.pk = None  # It was rolled back.
            raise
        return True

    @transaction.atomic
    def write_with_others(
        self,
        records: Sequence[Model],
        conditions: Sequence[Bound],
        guards: Mapping[str, Any] | None,
        abandons: bool,
        orphans: bool,
    ) -> None:
        if abandons:
            clean_up(self.action)
        takes = may_end_others(self.action)
        bound = find_bound_actions(self.action) if takes else Action.objects.none()
        if orphans:
            self.close_orphans()
        self.action.save_state(*records, conditions=conditions, guards=guards)
        if takes and (number := end_dependents(self.action, bound)):
            self.log.info("dependents ended", number=number, state=self.action.state)

    def held(self) -> Bound:
        return self.lease.hold(has_begun=self.action.values_read["state"] != Action.State.PENDING)

    def write_beside(self, phase: ActionEvent) -> bool:
        """Write the beginning or the end of a phase that does not change the state.

        The beginning of a phase also finishes earlier unfinished ones. The end is written in any state of the plan.

        Returns:
            False, without a write, if the phase may not begin.

        Raises:
            ConcurrentTransition: another process changed the action.
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
        """Finish the events that a lost worker left unfinished."""
        self.action.events.filter(finish_time=None).update(
            finish_time=timezone.now(), result=Result.ERROR, details=UNRECORDED.text
        )


def require_json(field: str, value: Any) -> None:
    """Check that a JSON column can store a value.

    Raises:
        ActionFailed, Invalid: it cannot; the message names the field and the rule.
    """
    if not isinstance(value, dict):
        raise ActionFailed(f"{field}: must be an object.")
    require_storable(field, value)
    try:
        json.dumps(value)
    except (TypeError, ValueError) as problem:
        raise ActionFailed(f"{field}: must contain only JSON values.") from problem


def make_outputs_storable(action: Action) -> None:
    """Replace outputs that cannot be stored by an error, because the action itself is completed."""
    try:
        require_json("outputs", action.outputs)
    except (ActionFailed, Refused) as problem:
        log.warning("outputs not kept", action=str(action.uuid), problem=str(problem))
        action.outputs.clear()
        action.outputs["error"] = explain(problem)


def save_data(action: Action, data: dict[str, Any]) -> None:
    """Store data at once, for a worker that continues the action.

    Raises:
        ActionFailed, Invalid: the data cannot be stored.
        LeaseLost: another worker owns the action.
    """
    require_json("data", data)
    if not Action.objects.filter(pk=action.pk, **action.values_read).update(data=data):
        raise LeaseLost
