"""The execution of one action by one worker: its phases, its states, and the record of both.

See docs/architecture.md, "The life of an action" and docs/architecture.md, "Guards, leases and attempts". An action
that is not disturbed takes two writes: its beginning, or its skip, and its end. Between them are written its
suspension, resumption and abortion, and the data that its type saves. A recovery or a revert is written before it
begins as well, so that it can be counted.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import partial

from django.conf import settings

from actions.engine.checkpoints import Checkpoint
from actions.engine.children import Derivation, finder
from actions.engine.data import save_data
from actions.engine.exclusion_check import ActionExcluded, Heed
from actions.engine.leases import Lease
from actions.engine.leftovers import advise, reconcile
from actions.engine.outcomes import TOO_LONG, ask
from actions.engine.phases import PERSISTENTLY, Result
from actions.engine.signals import Signalled
from actions.engine.slots import NO_SLOT, Slot
from actions.models import Action, ActionEvent
from actions.models.actions import GAVE_ITSELF_UP
from actions.models.callers import find_caller
from actions.models.instance_actions import InstanceAction
from actions.server_history.recording import new_operation, operation_of
from actions.types.base import (
    AbortRequested,
    ActionContext,
    ActionFailed,
    ActionSkipException,
    ActionType,
    Answer,
    Interruption,
    LeaseLost,
    Outcome,
    Recovery,
    TimedOut,
    explain,
    make,
)
from cluster.drivers.ownership import acting_for
from watcher_site.models import Service
from watcher_site.processes.worker import LOST_DATABASE
from watcher_site.state_machine import ConcurrentTransition

State, Signal = Action.State, Action.Signal
# The loss of a process interrupts all actions that it executes, and which of them was the cause is not known. After
# this number of losses an action is executed alone in its process, so that it is the cause of further losses.
SHARED_LOSSES = 3
# After this number of losses in total it is not executed again.
MOST_LOSSES = 6
# Nor after this number of interruptions of any kind, such as lost connections to the database.
MOST_RECOVERIES = 30
LOST_PROCESSES = "{} processes were lost while they executed it"
INTERRUPTED = "It was interrupted {} times"
NOT_DONE = "{}. It was not done, and is not tried again."
UNKNOWN = "{}. Its outcome is not known."


def execute(action: Action, lease: Lease, slot: Slot = NO_SLOT) -> bool:
    """Run a PENDING action to its end, and say whether it got there; if not, it is no longer ours to run."""
    execution = Execution(action, lease, slot)
    return execution.guarded(execution.run)


def recover(action: Action, lease: Lease, slot: Slot = NO_SLOT) -> bool:
    """Bring an action that a lost worker left behind to its end, running it again if its type allows."""
    execution = Execution(action, lease, slot)
    return execution.guarded(execution.recover)


def revert(action: Action, lease: Lease, slot: Slot = NO_SLOT) -> bool:
    """Undo a SUCCEEDED action, for a rollback. Its state stays; a ``revert`` event says how it went."""
    execution = Execution(action, lease, slot)
    return execution.guarded(execution.revert)


def is_to_be_alone(work: Callable[..., bool], action: Action) -> bool:
    """Return whether an action is to be recovered, or reverted again, while no other action runs in the same process.

    The loss that leads to this recovery is not counted yet.
    """
    return work is not execute and action.losses + 1 >= SHARED_LOSSES


def limit_of(action: Action) -> float:
    """Return after how many seconds work at an action, that did not stop by itself, may be given up.

    So long may take what comes before its execution, the execution itself, and its revert.
    """
    return action.seconds_allowed + settings.ACTION_TIMEOUT_GRACE


class Execution(Signalled, Derivation):
    """The execution of one action by one worker."""

    action_type: ActionType
    heed: Heed
    outcome: Outcome

    def __init__(self, action: Action, lease: Lease, slot: Slot) -> None:
        super().__init__(action, lease)
        self.checkpoint = Checkpoint(action, lease, slot)

    def guarded(self, work: Callable[[], bool]) -> bool:
        """Do the work, and say whether it came to its end. A lost database is raised, and only that."""
        try:
            with self.acting():
                return work()
        except (ConcurrentTransition, Interruption):
            return False
        except LOST_DATABASE:
            raise
        except BaseException as problem:
            self.log.error("action broke off", exc_info=problem)
            return self.break_off(type(problem).__name__)

    def acting(self) -> AbstractContextManager[None]:
        """Own operations in the cloud for this attempt, so that a slow worker cannot end those of its successor."""
        return acting_for(str(self.action.uuid), self.action.attempt, self.require_attempt)

    def require_attempt(self) -> None:
        """Lock the action's row until the end of the transaction, if it is still as this worker left it.

        Raises:
            LeaseLost: the action has ended, or another worker has it.
        """
        rows = Action.objects.filter(pk=self.action.pk, **self.action.values_read)
        if not rows.select_for_update(no_key=True).exists():
            raise LeaseLost

    def break_off(self, reason: str) -> bool:
        """End an action whose outcome can not be written: to run it again would only come to the same."""
        try:
            action = self.read_again()
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

    def run(self) -> bool:
        if self.action.has_derived:
            return self.take_up()
        while True:
            self.heed = Heed(self.action)
            phase = self.begin("pre_condition")
            problem = self.perform(phase, self.check)
            if problem:
                return self.leave_out(phase, problem)
            execute = self.begin("execute")
            guards, records = self.no_other_signal, self.operations()
            self.action.begin(self.lease.owner)
            try:
                self.write(phase, execute, hold=True, guards=guards, beside=self.heed.unchanged, records=records)
            except ConcurrentTransition:
                if not self.heed.is_outdated():
                    raise
                self.read_again()
            else:
                return self.carry_out(execute)

    def operations(self) -> list[InstanceAction]:
        """Return rows for the operations on servers that begin now, unless they have rows from a request."""
        return [
            operation_of(self.action, self.began, *operation)
            for operation in self.action_type.affected(self.action_type.input_parameters).operations.items()
        ]

    def take_up(self) -> bool:
        """Go on with an action that waited for those that it derived."""
        phase = self.begin("go_on")
        self.action.begin(self.lease.owner)
        return self.write(phase, hold=True, guards=self.no_other_signal) and self.carry_out(phase)

    def recover(self) -> bool:
        guards = self.no_other_signal
        if self.action.state == State.SUSPENDED:
            self.recall()
        elif self.action.control == Signal.SUSPEND and not self.is_plan_being_cancelled():
            return self.stay_suspended(guards)
        is_aborting = self.action.state == State.CANCELLING
        phase = self.begin("abort" if is_aborting else "recover")
        tries = self.tries()
        self.count_loss()
        # From here on the worker that was thought lost can write no more, should it only have slept.
        self.action.owner_id = self.lease.owner
        self.write(phase, orphans=True, guards=guards)
        if self.is_out_of(tries):
            return self.recover_for_the_last_time(phase, tries)
        return self.finish_abort(phase) if is_aborting else self.go_on(phase)

    def count_loss(self) -> None:
        """Count a loss of the action if the process that owned it is lost.

        A process that only lost its connection to the database continues its actions itself, or has released them.
        """
        owner = self.action.owner_id
        if owner not in (None, self.lease.owner) and Service.objects.lost().filter(pk=owner).exists():
            self.action.losses += 1

    def is_out_of(self, tries: int) -> bool:
        """Return whether the action was lost, or recovered or reverted (``tries``), too often to be executed again."""
        return self.action.losses >= MOST_LOSSES or tries >= MOST_RECOVERIES

    def why_given_up(self, tries: int) -> str:
        if self.action.losses >= MOST_LOSSES:
            return LOST_PROCESSES.format(self.action.losses)
        return INTERRUPTED.format(tries)

    def recover_for_the_last_time(self, phase: ActionEvent, tries: int) -> bool:
        """End an action that was interrupted too often with the outcome that its type reports, and end its operations.

        The type is not called again if the process was lost during an earlier call.
        """
        why, is_aborting = self.why_given_up(tries), self.action.state == State.CANCELLING
        if self.action.losses > MOST_LOSSES or tries > MOST_RECOVERIES:
            reason = UNKNOWN.format(why)
            self.finish(phase, Result.ERROR, reason)
        elif problem := self.perform(phase, self.ask_for_the_last_time):
            reason = explain(problem)
        elif self.recovery is Recovery.DONE:
            self.action.finish_before_abort() if is_aborting else self.action.succeed()
            return self.end(phase)
        else:
            reason = NOT_DONE.format(why)
            self.finish(phase, Result.ERROR, reason)
        reason = f"{reason} {advise(self.action)}".strip()
        self.log.error("action given up", problem=reason)
        self.action.fail_abort(reason) if is_aborting else self.action.fail("recover", reason)
        return self.end(phase, abandons=True)

    def go_on(self, phase: ActionEvent) -> bool:
        """Do what the type says of an action that was left in mid-execution."""
        problem = self.perform(phase, self.ask_recovery)
        if problem:
            self.action.fail("recover", explain(problem))
        elif self.recovery is Recovery.DONE:
            self.action.succeed()
        elif self.is_being_cancelled() and self.action.has_derived:
            return self.abort(phase)
        elif self.is_being_cancelled():
            self.cancel()
        else:
            return self.run_again(phase)
        return self.end(phase, abandons=self.action.state != State.SUCCEEDED)

    def revert(self) -> bool:
        phase = self.begin("revert")
        tries = self.action.events.filter(event="revert").count()
        if tries:
            self.count_loss()
        else:
            self.action.losses = 0
        self.action.begin_revert(self.lease.owner)
        if not self.write_beside(phase):
            return False
        self.checkpoint.slot.begin(self.action.attempt)
        if self.is_out_of(tries):
            self.give_up_revert(phase, tries)
        else:
            self.perform(phase, self.undo)
        self.action.end_revert()
        written: bool = PERSISTENTLY(self.write_beside, phase)
        self.log.info("action reverted", result=phase.result, written=written)
        return written

    def give_up_revert(self, phase: ActionEvent, tries: int) -> None:
        """End a revert that was interrupted too often, with none of its operations under way."""
        reason = f"{self.why_given_up(tries)}. It is not tried again."
        if self.action.losses <= MOST_LOSSES and tries <= MOST_RECOVERIES:
            problem = self.perform(phase, self.reconcile)
            reason = f"{reason} {explain(problem)}" if problem else reason
        self.finish(phase, Result.ERROR, f"{reason} {advise(self.action)}".strip())

    def run_again(self, phase: ActionEvent) -> bool:
        self.action.begin_again(self.lease.owner)
        execute = self.begin("go_on" if self.action.has_derived else "execute")
        return self.write(phase, execute, hold=True, guards=self.no_other_signal) and self.carry_out(execute)

    def leave_out(self, phase: ActionEvent, problem: BaseException) -> bool:
        """End an action that does not begin: skipped, or failed after its post_condition, as in Watcher."""
        if isinstance(problem, ActionSkipException):
            phase.result = Result.SKIPPED
            if isinstance(problem, ActionExcluded):
                self.action.exclude(problem.rule.key, explain(problem))
            else:
                self.action.skip_automatically(explain(problem))
            return self.end(phase, hold=True)
        phases, records = [phase], []
        if hasattr(self, "action_type"):
            records = self.operations()
            self.checkpoint.goes_forward = False
            phases.append(self.begin("post_condition"))
            self.perform(phases[-1], self.action_type.post_condition)
        self.action.fail("pre_condition", explain(problem))
        return self.end(*phases, hold=True, records=records)

    def carry_out(self, execute: ActionEvent) -> bool:
        self.checkpoint.slot.begin(self.action.attempt)
        self.checkpoint.note_begun()
        self.checkpoint.deadline = time.monotonic() + self.action.seconds_allowed
        with self.acting():
            return self.go_through(execute)

    def go_through(self, execute: ActionEvent) -> bool:
        try:
            problem = self.perform(execute, self.work)
        except AbortRequested:
            return self.abort(execute)
        except TimedOut:
            return self.time_out(execute)
        self.checkpoint.goes_forward = False  # What finished first keeps its result.
        if problem is None and self.outcome.answer is Answer.RETRY:
            return self.unless_signalled(execute, self.put_off)
        if problem is None and self.outcome.answer is Answer.CANCEL:
            return self.give_itself_up(execute)
        if problem is None and self.outcome.answer is Answer.WAIT:
            return self.unless_signalled(execute, self.derive)
        post = self.begin("post_condition")
        post_problem = self.perform(post, self.action_type.post_condition)
        if problem:
            self.action.fail(execute.event, explain(problem))
        elif post_problem:
            self.action.fail("post_condition", explain(post_problem))
        else:
            self.action.succeed()
        return self.end(execute, post)

    def time_out(self, execute: ActionEvent) -> bool:
        """Fail what takes longer than it may, and have its type undo what it had begun."""
        reason = TOO_LONG.format(self.action.seconds_allowed)
        self.finish(execute, Result.ERROR, reason)
        phase = self.begin("abort")
        self.perform(phase, self.ask_abort)
        self.action.fail(execute.event, reason)
        return self.end(execute, phase)

    def put_off(self, execute: ActionEvent) -> bool:
        """Defer the action and release it; any worker may execute it when its time comes."""
        self.finish(execute, Result.RETRY, self.outcome.reason)
        guards = self.no_other_signal
        self.action.put_off(self.outcome.reason, self.outcome.until, self.outcome.lock_holder)
        return self.end(execute, guards=guards)

    def cancel_instead(self, execute: ActionEvent) -> bool:
        """Cancel an action that was to be deferred or to wait for derived actions."""
        if self.action.has_derived or self.outcome.answer is Answer.WAIT:
            return self.abort(execute)
        self.finish(execute, Result.CANCELLED)
        self.cancel()
        return self.end(execute, abandons=True)

    def give_itself_up(self, execute: ActionEvent) -> bool:
        self.finish(execute, Result.CANCELLED, self.outcome.reason)
        self.action.request_abort()
        self.action.finish_abort(f"{GAVE_ITSELF_UP} {self.outcome.reason}".strip())
        return self.end(execute)

    def abort(self, execute: ActionEvent) -> bool:
        """Give the action up in mid-execution; that it is being given up can be seen while it takes its time."""
        self.action.request_abort()
        self.action.save_state()
        self.finish(execute, Result.CANCELLED)
        return self.finish_abort(self.begin("abort"), execute)

    def finish_abort(self, phase: ActionEvent, *execute: ActionEvent) -> bool:
        problem = self.perform(phase, self.ask_abort)
        if late := self.why_late():
            self.action.fail_abort(late, "wait")
        elif problem:
            self.action.fail_abort(explain(problem))
        elif self.aborted:
            self.action.finish_abort(self.why_cancelled())
        else:
            self.action.finish_before_abort()
        return self.end(*execute, phase)

    # What each phase calls.

    def load(self) -> None:
        action = self.action
        context = ActionContext(
            action_uuid=str(action.uuid),
            checkpoint=self.checkpoint,
            find_derived=finder(action),
            outputs=action.outputs,
            data=action.data,
            find_caller=partial(find_caller, action),
            keep_data=partial(save_data, action),
            is_derived=action.derived_from_id is not None,
            timeout=action.timeout,
            new_operation=partial(new_operation, action, self.began),
        )
        self.action_type = make(action.action_type, action.input_parameters, context)

    def check(self) -> None:
        self.checkpoint.goes_forward = True
        self.heed.look()
        self.load()
        self.action_type.pre_condition()
        # It may have taken its time.
        self.heed.look()

    def work(self) -> None:
        self.checkpoint.goes_forward = True
        if self.action.has_derived:
            self.load()
        self.outcome = ask(self.action_type, self.action)
        if self.outcome.answer is Answer.WAIT:
            self.checkpoint.look()  # What is being cancelled makes nothing new.

    def ask_abort(self) -> None:
        self.checkpoint.goes_forward = False
        if not hasattr(self, "action_type"):
            self.load()
        self.aborted = self.action_type.abort()

    def ask_recovery(self) -> None:
        self.load()
        # go_on of a type may be called twice, so its state does not matter.
        self.recovery = Recovery.AGAIN if self.action.has_derived else self.action_type.recover()

    def reconcile(self) -> None:
        reconcile(self.action, self.checkpoint)

    def ask_for_the_last_time(self) -> None:
        """Determine the outcome of the action after its last operation in the cloud has ended.

        An action that derived others has no operation of its own in the cloud, and is not tried again.
        """
        self.reconcile()
        self.load()
        self.recovery = Recovery.AGAIN if self.action.has_derived else self.action_type.recover()
        if self.recovery is Recovery.AGAIN:
            self.action_type.clean_up()

    def undo(self) -> None:
        self.load()
        if not self.action_type.revert():
            raise ActionFailed(f"The action {self.action.uuid} could not be reverted.")
