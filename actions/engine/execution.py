"""The execution of one action by one worker: its phases, its states, and their records.

See docs/architecture.md, "The life of an action" and docs/architecture.md, "Guards, leases and attempts". Most actions
take two writes: the beginning and the end. Suspensions, resumptions, aborts and the data that a type saves take
further ones. The beginning of a recovery or a revert is written as well, so that these can be counted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from structlog.contextvars import bound_contextvars

from actions.engine import messages
from actions.engine.checkpoints import Checkpoint
from actions.engine.children import Derivation, find_derived, outcome_with_derived
from actions.engine.leases import NO_SLOT, Lease, Slot
from actions.engine.phases import ActionPhases, ExclusionCheck, Result, call_method
from actions.engine.signals import Signalled
from actions.engine.storage import PERSISTENTLY, save_data
from actions.messages import TOO_LONG
from actions.models import Action, ActionEvent
from actions.models.instance_actions import InstanceAction
from actions.server_history import find_caller, new_operation, operation_of
from actions.types.base import (
    AbortRequested,
    ActionFailed,
    Answer,
    Interruption,
    LeaseLost,
    Outcome,
    Recovery,
    TimedOut,
    explain,
)
from cluster.drivers.base import ServerNotFound, VolumeNotFound, cloud
from cluster.drivers.ownership import acting_for
from cluster.models import Server, Volume
from watcher_site.models import Service
from watcher_site.monitoring.metrics import action_recoveries, action_retries
from watcher_site.monitoring.tracing import tracing
from watcher_site.processes.worker import LOST_DATABASE
from watcher_site.request_context import within_request
from watcher_site.state_machine import ConcurrentTransition

State, Signal = Action.State, Action.Signal
# A lost process interrupts all its actions, any of which may be the cause. After this number of losses, an action is
# executed alone in its process, so that it is known to be the cause of a further loss.
SHARED_LOSSES = 3
# After this number of losses, an action is not executed again.
MAX_LOSSES = 6
# After this number of interruptions of any kind, such as lost database connections, it is not executed again either.
MAX_RECOVERIES = 30


def execute(action: Action, lease: Lease, slot: Slot = NO_SLOT) -> bool:
    """Run a PENDING action. Return whether it has ended; otherwise it was released or taken over."""
    execution = Execution(action, lease, slot)
    return execution.guarded(execution.run)


def recover(action: Action, lease: Lease, slot: Slot = NO_SLOT) -> bool:
    """Recover an action whose worker was lost, as its type decides. Return whether it has ended."""
    execution = Execution(action, lease, slot)
    return execution.guarded(execution.recover)


def revert(action: Action, lease: Lease, slot: Slot = NO_SLOT) -> bool:
    """Revert a SUCCEEDED action, for a rollback. Its state remains; a ``revert`` event records the result."""
    execution = Execution(action, lease, slot)
    return execution.guarded(execution.revert)


def runs_alone(work: Callable[..., bool], action: Action) -> bool:
    """Return whether an action is recovered or reverted while no other action runs in the same process.

    The loss that led to this recovery is not counted yet in the action's row.
    """
    return work is not execute and action.losses + 1 >= SHARED_LOSSES


def limit_of(action: Action) -> float:
    """Return the seconds after which an action that does not stop by itself is hung.

    The limit applies separately to the checks before its execution, to the execution, and to its revert.
    """
    return action.seconds_allowed + settings.ACTION_TIMEOUT_GRACE


class Execution(Signalled, Derivation, ActionPhases):
    """The execution of one action by one worker."""

    checkpoint: Checkpoint
    exclusions: ExclusionCheck | None = None

    def __init__(self, action: Action, lease: Lease, slot: Slot) -> None:
        super().__init__(action, lease)
        self.owner = lease.owner
        self.checkpoint = Checkpoint(action, lease, slot)

    def guarded(self, work: Callable[[], bool]) -> bool:
        """Call ``work``, and return whether the action has ended.

        Raises:
            The errors of `LOST_DATABASE`. Any other error ends the action.
        """
        try:
            # All log events contain the action, including those of libraries.
            traced = self.tracing(work) if tracing.is_on else nullcontext()
            with (
                bound_contextvars(action=str(self.action.uuid)),
                within_request(self.lease.request_id),
                self.acting(),
                traced,
            ):
                return work()
        except (ConcurrentTransition, Interruption):
            return False
        except LOST_DATABASE:
            raise
        except BaseException as problem:
            self.log.error("action failed unexpectedly", exc_info=problem)
            return self.end_after_error(type(problem).__name__)

    def acting(self) -> AbstractContextManager[None]:
        """Return a context manager in which operations of the cloud carry the action and its attempt.

        A slow worker therefore cannot end the operations of its successor.
        """
        return acting_for(str(self.action.uuid), self.action.attempt, self.require_attempt)

    @contextmanager
    def tracing(self, work: Callable[[], bool]) -> Iterator[None]:
        """Record the work as a span, which belongs to the trace of the request or audit that started the plan."""
        action, lease = self.action, self.lease
        attributes = {
            "watcher.action": str(action.uuid),
            "watcher.action_type": action.action_type,
            "watcher.plan": lease.plan_uuid,
            "watcher.request_id": lease.request_id,
        }
        name = f"{work.__name__} {action.action_type}"
        with tracing.span(name, attributes, parent=lease.traceparent) as span:
            try:
                yield
            finally:
                # The action was read again if the exclusions changed before its beginning.
                span.set("watcher.attempt", self.action.attempt)
                span.set("watcher.state", self.action.state)
            if self.action.state == State.FAILED:
                span.fail(self.action.state)

    def require_attempt(self) -> None:
        """Lock the action's row until the end of the transaction, unless another process has changed it.

        Raises:
            LeaseLost: the action has ended, or another worker owns it.
        """
        rows = Action.objects.filter(pk=self.action.pk, **self.action.values_read)
        if not rows.select_for_update(no_key=True).exists():
            raise LeaseLost

    def end_after_error(self, reason: str) -> bool:
        """Fail an action after an unexpected error of the engine, which would occur again in another run."""
        try:
            action = self.reload_action()
        except ConcurrentTransition:
            return False
        hold = action.state not in Action.BEGUN
        self.finish(self.phase, Result.ERROR, reason)
        if action.state == State.CANCELLING:
            action.fail_abort(reason)
        elif action.state not in Action.FINAL:
            action.fail(self.phase.event, reason)
        with suppress(ConcurrentTransition):
            return self.end(self.phase, hold=hold, orphans=True, abandons=True)
        return False

    def write_beginning(self, *phases: ActionEvent) -> bool:
        guards, exclusions = self.no_other_signal, self.exclusions
        unchanged = [exclusions.rules.unchanged] if exclusions else []
        try:
            return self.write(*phases, hold=True, guards=guards, conditions=unchanged, records=self.operations())
        except ConcurrentTransition:
            if not (exclusions and exclusions.is_outdated()):
                raise
        self.reload_action()
        self.exclusions = None
        return False

    def operations(self) -> list[InstanceAction]:
        """Return rows for the operations on servers that begin with the action.

        A row that exists already, of an earlier attempt, is not written again (`WrittenOnce`).
        """
        return [
            operation_of(self.action, self.began, *operation)
            for operation in self.action_type.affected(self.action_type.input_parameters).operations.items()
        ]

    def recover(self) -> bool:
        guards = self.no_other_signal
        if self.action.state == State.SUSPENDED:
            self.resume_for_recovery()
        elif self.action.control == Signal.SUSPEND and not self.is_plan_being_cancelled():
            return self.stay_suspended(guards)
        is_aborting = self.action.state == State.CANCELLING
        phase = self.begin("abort" if is_aborting else "recover")
        attempts = self.count_attempts()
        self.count_loss()
        # With a new owner, the guards refuse writes of the previous worker, which may only have been paused.
        self.action.owner_id = self.lease.owner
        self.write(phase, orphans=True, guards=guards)
        action_recoveries.labels(self.action.action_type).inc()
        if self.exceeds_limits(attempts):
            return self.recover_finally(phase, attempts)
        return self.finish_abort(phase) if is_aborting else self.recover_with(phase)

    def count_loss(self) -> None:
        """Count a loss of the action if the process that owned it is lost.

        A process that only lost its database connection continues its actions itself, or has released them.
        """
        owner = self.action.owner_id
        if owner not in (None, self.lease.owner) and Service.objects.lost().filter(pk=owner).exists():
            self.action.losses += 1

    def exceeds_limits(self, attempts: int) -> bool:
        """Return whether the action was lost, recovered or reverted too often to be executed again."""
        return self.action.losses >= MAX_LOSSES or attempts >= MAX_RECOVERIES

    def describe_interruptions(self, attempts: int) -> str:
        if self.action.losses >= MAX_LOSSES:
            return messages.LOST_PROCESSES.fill(number=self.action.losses)
        return messages.INTERRUPTED.fill(number=attempts)

    def recover_finally(self, phase: ActionEvent, attempts: int) -> bool:
        """End an action that was interrupted too often with the outcome that its type reports.

        Its operations in the cloud are completed first. The type is not called if an earlier call lost its process.
        """
        why, is_aborting = self.describe_interruptions(attempts), self.action.state == State.CANCELLING
        if self.action.losses > MAX_LOSSES or attempts > MAX_RECOVERIES:
            reason = messages.UNKNOWN.fill(interruption=why)
            self.finish(phase, Result.ERROR, reason)
        elif problem := self.perform(phase, self.find_last_outcome):
            reason = explain(problem)
        elif self.recovery is Recovery.DONE:
            self.action.finish_before_abort() if is_aborting else self.action.succeed()
            return self.end(phase)
        else:
            reason = messages.NOT_DONE.fill(interruption=why)
            self.finish(phase, Result.ERROR, reason)
        reason = f"{reason} {advise(self.action)}".strip()
        self.log.error("action given up", problem=reason)
        self.action.fail_abort(reason) if is_aborting else self.action.fail("recover", reason)
        return self.end(phase, abandons=True)

    def run_again(self, phase: ActionEvent) -> bool:
        if not self.is_being_cancelled():
            return super().run_again(phase)
        if self.action.has_derived:
            return self.abort(phase)
        self.cancel()
        return self.end(phase, abandons=True)

    def revert(self) -> bool:
        phase = self.begin("revert")
        attempts = self.action.events.filter(event="revert").count()
        if attempts:
            self.count_loss()
        else:
            self.action.losses = 0
        self.action.begin_revert(self.lease.owner)
        if not self.write_beside(phase):
            return False
        self.checkpoint.slot.begin(self.action.attempt)
        if self.exceeds_limits(attempts):
            self.give_up_revert(phase, attempts)
        else:
            self.perform(phase, self.call_revert)
        self.action.end_revert()
        written: bool = PERSISTENTLY(self.write_beside, phase)
        self.log.info("action reverted", result=phase.result, written=written)
        return written

    def give_up_revert(self, phase: ActionEvent, attempts: int) -> None:
        """End a revert that was interrupted too often, after its operations in the cloud have ended."""
        why = self.describe_interruptions(attempts)
        reason = messages.REVERT_GIVEN_UP.fill(interruption=why)
        if self.action.losses <= MAX_LOSSES and attempts <= MAX_RECOVERIES:
            problem = self.perform(phase, self.reconcile)
            if problem:
                reason = messages.REVERT_GIVEN_UP_AFTER.fill(interruption=why, reason=explain(problem))
        self.finish(phase, Result.ERROR, f"{reason} {advise(self.action)}".strip())

    def execute_and_end(self, execute: ActionEvent) -> bool:
        self.checkpoint.begin()
        with self.acting():
            try:
                return super().execute_and_end(execute)
            except AbortRequested:
                return self.abort(execute)
            except TimedOut:
                return self.time_out(execute)

    def time_out(self, execute: ActionEvent) -> bool:
        """Fail an action that exceeded its timeout, after its type has aborted it."""
        reason = TOO_LONG.fill(number=self.action.seconds_allowed)
        self.finish(execute, Result.ERROR, reason)
        phase = self.begin("abort")
        self.perform(phase, self.call_abort)
        self.action.fail(execute.event, reason)
        return self.end(execute, phase)

    def defer(self, execute: ActionEvent) -> bool:
        """Defer the action and release it. Any worker may execute it when it becomes due."""
        self.finish(execute, Result.RETRY, self.outcome.reason)
        guards = self.no_other_signal
        self.action.defer(self.outcome.reason, self.outcome.until, self.outcome.lock_holder)
        written = self.end(execute, guards=guards)
        action_retries.labels(self.action.action_type).inc()
        return written

    def cancel_instead(self, execute: ActionEvent) -> bool:
        """Cancel an action that was to be deferred or to wait for derived actions."""
        if self.action.has_derived or self.outcome.answer is Answer.WAIT:
            return self.abort(execute)
        self.finish(execute, Result.CANCELLED)
        self.cancel()
        return self.end(execute, abandons=True)

    def abort(self, execute: ActionEvent) -> bool:
        """Abort a running action. Its state is CANCELLING until its type has aborted it."""
        self.action.request_abort()
        self.action.save_state()
        self.finish(execute, Result.CANCELLED)
        return self.finish_abort(self.begin("abort"), execute)

    def finish_abort(self, phase: ActionEvent, *execute: ActionEvent) -> bool:
        problem = self.perform(phase, self.call_abort)
        if reason := self.find_timeout_reason():
            self.action.fail_abort(reason, "wait")
        elif problem:
            self.action.fail_abort(explain(problem))
        elif self.aborted:
            self.action.finish_abort(self.cancellation_message())
        else:
            self.action.finish_before_abort()
        return self.end(*execute, phase)

    # The work of the phases.

    def services(self) -> Mapping[str, Any]:
        return {
            "checkpoint": self.checkpoint,
            "find_derived": partial(find_derived, self.action),
            "find_caller": partial(find_caller, self.action),
            "keep_data": partial(save_data, self.action),
            "new_operation": partial(new_operation, self.action, self.began),
        }

    def check_exclusions(self) -> None:
        if self.exclusions is None:
            self.exclusions = ExclusionCheck(self.action)
        self.exclusions.check()

    def call(self) -> Outcome:
        if self.action.has_derived:
            return outcome_with_derived(self.action, call_method(self.action_type, "go_on"))
        return call_method(self.action_type, "execute", self.action.is_to_derive)

    def call_abort(self) -> None:
        self.checkpoint.is_interruptible = False
        if not hasattr(self, "action_type"):
            self.load()
        self.aborted = self.action_type.abort()

    def reconcile(self) -> None:
        """Wait for the end of each operation of the action in the cloud that is not completed."""
        for server in find_servers(self.action):
            with suppress(ServerNotFound):
                cloud().reconcile(str(server), self.checkpoint)
        for volume in find_volumes(self.action):
            with suppress(VolumeNotFound):
                cloud().reconcile_volume(str(volume), self.checkpoint)

    def find_last_outcome(self) -> None:
        """Determine the outcome of the action after its last operation in the cloud has ended.

        An action that derived others has no operation of its own in the cloud, and is not tried again.
        """
        self.reconcile()
        self.load()
        self.recovery = Recovery.AGAIN if self.action.has_derived else self.action_type.recover()
        if self.recovery is Recovery.AGAIN:
            self.action_type.clean_up()

    def call_revert(self) -> None:
        self.load()
        if not self.action_type.revert():
            raise ActionFailed(messages.NOT_REVERTED.fill(uuid=self.action.uuid))


def find_servers(action: Action) -> Sequence[UUID]:
    """Return the servers with an uncompleted operation of the action."""
    return list(Server.objects.present().filter(**begun_by(action)).order_by("pk").values_list("uuid", flat=True))


def find_volumes(action: Action) -> Sequence[UUID]:
    """Return the volumes with an uncompleted operation of the action."""
    return list(Volume.objects.present().filter(**begun_by(action)).order_by("pk").values_list("uuid", flat=True))


def begun_by(action: Action) -> dict[str, str]:
    return {"operation_owner__startswith": f"{action.uuid}/"}


def advise(action: Action) -> str:
    """Return instructions for an administrator about uncompleted operations of an action; empty without any."""
    objects = [messages.BUSY_SERVER.fill(uuid=server) for server in find_servers(action)]
    objects += [messages.BUSY_VOLUME.fill(uuid=volume) for volume in find_volumes(action)]
    if not objects:
        return ""
    return messages.ADVICE.fill(objects=", ".join(objects))
