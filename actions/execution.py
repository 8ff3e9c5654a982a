"""All that one worker does with one action: its phases, its states, and the record of both.

A worker writes at most twice: when the action begins (or is left out), and when it ends. The first time it holds the
plan, so that no action begins under a cancelled plan or for an applier that lost it; the second time the action's
state and attempt are guard enough.
"""

from collections.abc import Callable
from typing import Protocol

import structlog
from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone

from actions.models import Action, ActionEvent
from actions.types.base import (
    AbortRequested,
    ActionContext,
    ActionFailed,
    ActionSkipException,
    ActionType,
    LeaseLost,
    Recovery,
    explain,
    make,
)
from watcher_site.messages import cut
from watcher_site.state import ConcurrentTransition
from watcher_site.statements import Bound, insert

log = structlog.get_logger(__name__)
Result = ActionEvent.Result
CANCELLED = "Action was cancelled with its action plan."


class Lease(Protocol):
    """A worker's right to work at a plan."""

    host: str
    cancelling: bool

    def hold(self) -> Bound:
        """Return the query that locks the plan, and finds it only while actions of it may begin here."""

    def checkpoint(self) -> None:
        """Raises: `AbortRequested`, `LeaseLost`."""


def execute(action: Action, lease: Lease) -> bool:
    """Run a PENDING action to its end, and say whether it got there; if not, it is no longer ours to run."""
    return guarded(Execution(action, lease).run)


def recover(action: Action, lease: Lease) -> bool:
    """Bring an action that a lost worker left behind to its end, running it again if its type allows."""
    return guarded(Execution(action, lease).recover)


def revert(action: Action, lease: Lease) -> bool:
    """Undo a SUCCEEDED action, for a rollback. Its state stays; a ``revert`` event says how it went."""
    return guarded(Execution(action, lease).revert)


def guarded(work: Callable[[], bool]) -> bool:
    try:
        return work()
    except (ConcurrentTransition, AbortRequested, LeaseLost):
        return False


class Execution:
    """One action in the hands of one worker."""

    action_type: ActionType
    abortable = False

    def __init__(self, action: Action, lease: Lease) -> None:
        self.action, self.lease = action, lease
        self.log = log.bind(action=str(action.uuid), action_type=action.action_type)

    def run(self) -> bool:
        phase = self.begin("pre_condition")
        problem = self.perform(phase, self.check)
        if problem:
            return self.leave_out(phase, problem)
        execute = self.begin("execute")
        self.action.start()
        return self.write(phase, execute, hold=True) and self.carry_out(execute)

    def recover(self) -> bool:
        if self.action.state == Action.State.CANCELLING:
            self.load()
            return self.abort()
        phase = self.begin("recover")
        problem = self.perform(phase, self.ask_recovery)
        if problem:
            self.action.fail("recover", explain(problem))
        elif self.recovery is Recovery.DONE:
            self.action.succeed()
        elif self.lease.cancelling:
            self.action.request_abort()
            self.action.finish_abort(CANCELLED)
        else:
            return self.run_again(phase)
        return self.end(phase)

    def revert(self) -> bool:
        self.lease.checkpoint()
        phase = self.begin("revert")
        self.perform(phase, self.undo)
        with transaction.atomic():
            if not self.lease.hold().rows():
                return False
            insert([phase])
        self.log.info("action reverted", result=phase.result)
        return True

    def run_again(self, phase: ActionEvent) -> bool:
        self.action.start_again()
        execute = self.begin("execute")
        return self.write(phase, execute, hold=True, orphans=True) and self.carry_out(execute)

    def leave_out(self, phase: ActionEvent, problem: Exception) -> bool:
        """End an action that does not begin: skipped or failed straight from PENDING, without a post_condition."""
        if isinstance(problem, ActionSkipException):
            phase.result = Result.SKIPPED
            self.action.skip_automatically(explain(problem))
        else:
            self.action.fail("pre_condition", explain(problem))
        return self.end(phase, hold=True)

    def carry_out(self, execute: ActionEvent) -> bool:
        try:
            problem = self.perform(execute, self.work)
        except AbortRequested:
            return self.abort(execute)
        post = self.begin("post_condition")
        post_problem = self.perform(post, self.action_type.post_condition)
        if problem:
            self.action.fail("execute", explain(problem))
        elif post_problem:
            self.action.fail("post_condition", explain(post_problem))
        else:
            self.action.succeed()
        return self.end(execute, post)

    def abort(self, *execute: ActionEvent) -> bool:
        """Give the action up in mid-execution; that it is being given up can be seen while it takes its time."""
        if self.action.state != Action.State.CANCELLING:
            self.action.request_abort()
            self.action.save_state()
        for phase in execute:
            self.finish(phase, Result.CANCELLED)
        phase = self.begin("abort")
        problem = self.perform(phase, self.ask_abort)
        if problem:
            self.action.fail_abort(explain(problem))
        elif self.aborted:
            self.action.finish_abort(CANCELLED)
        else:
            self.action.finish_before_abort()
        return self.end(*execute, phase, orphans=not execute)

    # What each phase calls.

    def checkpoint(self) -> None:
        """Only what goes forward can be aborted: recover, abort and revert stop for a lost lease alone."""
        try:
            self.lease.checkpoint()
        except AbortRequested:
            if self.abortable:
                raise

    def load(self) -> None:
        context = ActionContext(str(self.action.uuid), self.checkpoint)
        self.action_type = make(self.action.action_type, self.action.input_parameters, context)

    def check(self) -> None:
        self.abortable = True
        self.load()
        self.action_type.pre_condition()

    def work(self) -> None:
        self.abortable = True
        if self.action_type.execute() is not True:
            raise ActionFailed(f"The action {self.action.uuid} execution failed.")

    def ask_abort(self) -> None:
        self.abortable = False
        self.aborted = self.action_type.abort()

    def ask_recovery(self) -> None:
        self.load()
        self.recovery = self.action_type.recover()

    def undo(self) -> None:
        self.load()
        if not self.action_type.revert():
            raise ActionFailed(f"The action {self.action.uuid} could not be reverted.")

    # The record.

    def begin(self, event: str) -> ActionEvent:
        now = timezone.now()
        return ActionEvent(action=self.action, event=event, start_time=now, host=self.lease.host)

    def finish(self, phase: ActionEvent, result: str, details: str | None = None) -> None:
        phase.finish_time, phase.result, phase.details = timezone.now(), result, details and cut(details)

    def perform(self, phase: ActionEvent, work: Callable[[], None]) -> Exception | None:
        """Do what the phase is for, and return what went wrong. A lost database is nobody's failure: it is raised."""
        try:
            work()
        except (InterfaceError, OperationalError):
            raise
        except Exception as problem:
            if not isinstance(problem, ActionSkipException):
                self.log.warning("action phase failed", phase=phase.event, exc_info=problem)
            self.finish(phase, Result.ERROR, explain(problem))
            return problem
        self.finish(phase, Result.SUCCESS)
        return None

    def end(self, *phases: ActionEvent, hold: bool = False, orphans: bool = False) -> bool:
        written = self.write(*phases, hold=hold, orphans=orphans)
        if written:
            self.log.info("action ended", state=self.action.state, message=self.action.status_message)
        return written

    def write(self, *phases: ActionEvent, hold: bool = False, orphans: bool = False) -> bool:
        """Commit the action's new state and the phases together.

        Raises:
            ConcurrentTransition: the action is no longer as this worker left it, or its plan may not be worked at.
        """
        for phase in phases:
            phase.attempt = self.action.attempt
        condition = self.lease.hold() if hold else None
        if not orphans:
            self.action.save_state(*phases, condition=condition)
            return True
        with transaction.atomic():
            self.close_orphans()
            self.action.save_state(*phases, condition=condition)
        return True

    def close_orphans(self) -> None:
        """End what the lost worker had begun to record."""
        self.action.events.filter(finish_time=None).update(
            finish_time=timezone.now(), result=Result.ERROR, details="Its applier was lost."
        )
