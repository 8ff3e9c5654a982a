"""The phases of an action: their order, and the consequences of their results for the action.

Executions and the dry runs of preflights use the same phases. `ActionPhases` changes the action in memory and writes
nothing; its subclasses supply the writes, the checkpoint and the context.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, Protocol

import structlog
from django.conf import settings
from django.db.models import Model
from django.utils import timezone

from actions.exclusions.matching import find_excluded
from actions.exclusions.rules import Rule, cached_rules, current_rules
from actions.graph.proposals import ProposedAction, check_graph
from actions.messages import (
    CANCELLED_ALONE,
    EXECUTION_FAILED,
    EXECUTION_TOO_LONG,
    GAVE_ITSELF_UP_BECAUSE,
    RETRIES_EXCEEDED,
)
from actions.models import Action, ActionEvent
from actions.types.base import (
    OWN_EXCEPTIONS,
    ActionContext,
    ActionFailed,
    ActionSkipException,
    ActionType,
    Answer,
    Interruption,
    Outcome,
    Recovery,
    explain,
    make,
)
from cluster.drivers.base import CloudBusy
from watcher_site.messages import cut
from watcher_site.outbox import payloads
from watcher_site.processes.worker import LOST_DATABASE

log = structlog.get_logger(__name__)
Result = ActionEvent.Result
# The status messages of actions whose execute failed without a reason.
REASONS = {Answer.ERROR: EXECUTION_FAILED, Answer.TIMEOUT: EXECUTION_TOO_LONG}


class PhaseCheckpoint(Protocol):
    """The part of a checkpoint that the phases use."""

    is_interruptible: bool
    """Whether the current phase can be aborted and time out. Other phases stop only for a lost lease."""

    def check(self) -> None:
        """Return when the action may continue, or raise if it must stop."""


class PhaseRecord:
    """The record of an action's phases, in memory."""

    phase: ActionEvent
    """The phase that began last."""
    began: datetime | None = None
    """The time at which the first phase began."""

    def __init__(self, action: Action, host: str = "") -> None:
        self.action, self.host = action, host

    @cached_property
    def log(self) -> Any:
        return log.bind(action=str(self.action.uuid), action_type=self.action.action_type)

    def begin(self, event: str) -> ActionEvent:
        now = timezone.now()
        self.began = self.began or now
        self.phase = ActionEvent(action_id=self.action.pk, event=event, start_time=now, host=self.host)
        return self.phase

    def finish(self, phase: ActionEvent, result: str, details: str | None = None) -> None:
        phase.finish_time, phase.result, phase.details = timezone.now(), result, details and cut(details)

    def perform(self, phase: ActionEvent, work: Callable[[], None]) -> BaseException | None:
        """Call ``work`` as a phase, and return its error, even a SystemExit, which must not end the worker.

        Raises:
            Interruption, and the errors of `LOST_DATABASE`, which are not failures of the action.
        """
        try:
            work()
        except (*LOST_DATABASE, Interruption):
            raise
        except BaseException as problem:
            self.record_failure(phase, problem)
            return problem
        self.finish(phase, Result.SUCCESS)
        return None

    def record_failure(self, phase: ActionEvent, problem: BaseException) -> None:
        """Log the error of a phase, and record it in the phase and in the action."""
        self.log_failure(phase, problem)
        reason = explain(problem)
        self.finish(phase, Result.ERROR, reason)
        # Keep the fault of the first phase that failed.
        self.action.fault = self.action.fault or payloads.describe_fault(problem, reason)

    def log_failure(self, phase: ActionEvent, problem: BaseException) -> None:
        """Log the error of a phase, with the traceback of an unexpected one."""
        if isinstance(problem, ActionSkipException):
            return
        unexpected = None if isinstance(problem, OWN_EXCEPTIONS) else problem
        reason = explain(problem, is_for_log=True)
        self.log.warning("action phase failed", phase=phase.event, problem=reason, exc_info=unexpected)


class ActionPhases(PhaseRecord, ABC):
    """The phases of one action, until it ends, is deferred, or waits for derived actions."""

    action_type: ActionType
    checkpoint: PhaseCheckpoint
    outcome: Outcome
    recovery: Recovery

    # Supplied by subclasses.

    owner: int | None = None
    """The service that executes the action."""

    def services(self) -> Mapping[str, Any]:
        """Return the callables of the type's context that differ from the defaults."""
        return {}

    @abstractmethod
    def check_exclusions(self) -> None:
        """Raise `ActionExcluded` if an exclusion prevents the execution of the action."""

    @abstractmethod
    def call(self) -> Outcome:
        """Call execute or go_on of the type."""

    def operations(self) -> Sequence[Model]:
        """Return rows, not yet written, for the operations on servers that begin with the action."""
        return ()

    @abstractmethod
    def write(self, *phases: ActionEvent, hold: bool = ..., guards: Mapping[str, Any] | None = ...) -> bool:
        """Write the action's state together with the phases."""

    @abstractmethod
    def write_beginning(self, *phases: ActionEvent) -> bool:
        """Write the beginning, and return True, or False if the exclusions have to be checked again first."""

    @abstractmethod
    def end(self, *phases: ActionEvent, **how: Any) -> bool:
        """Write the end of the action, or its release."""

    @property
    def no_other_signal(self) -> Mapping[str, Any]:
        """Return guards that keep the worker from overwriting a signal that it has not seen."""
        return {"control": self.action.control}

    def unless_signalled(self, execute: ActionEvent, release: Callable[[ActionEvent], bool]) -> bool:
        """Release the action, unless it receives a signal at the same time."""
        return release(execute)

    @abstractmethod
    def defer(self, execute: ActionEvent) -> bool:
        """Defer the action and release it."""

    @abstractmethod
    def derive(self, execute: ActionEvent) -> bool:
        """Release the action until the actions that it derives have ended."""

    # The order of the phases.

    def run(self) -> bool:
        """Run a PENDING action."""
        if self.action.has_derived:
            return self.continue_after_derived()
        while True:
            phase = self.begin("pre_condition")
            problem = self.perform(phase, self.check)
            if problem:
                return self.end_unbegun(phase, problem)
            execute = self.begin("execute")
            self.action.begin(self.owner)
            if self.write_beginning(phase, execute):
                return self.execute_and_end(execute)

    def continue_after_derived(self) -> bool:
        """Continue an action whose derived actions have ended."""
        phase = self.begin("go_on")
        self.action.begin(self.owner)
        return self.write(phase, hold=True, guards=self.no_other_signal) and self.execute_and_end(phase)

    def recover_with(self, phase: ActionEvent) -> bool:
        """Continue an action whose worker was lost, as the recover method of its type decides."""
        problem = self.perform(phase, self.call_recover)
        if problem:
            self.action.fail("recover", explain(problem))
        elif self.recovery is Recovery.DONE:
            self.action.succeed()
        else:
            return self.run_again(phase)
        return self.end(phase, abandons=problem is not None)

    def run_again(self, phase: ActionEvent) -> bool:
        self.action.begin_again(self.owner)
        execute = self.begin("go_on" if self.action.has_derived else "execute")
        return self.write(phase, execute, hold=True, guards=self.no_other_signal) and self.execute_and_end(execute)

    def end_unbegun(self, phase: ActionEvent, problem: BaseException) -> bool:
        """End an action that does not begin: SKIPPED, or FAILED after its post_condition, as in Watcher."""
        if isinstance(problem, ActionSkipException):
            phase.result = Result.SKIPPED
            if isinstance(problem, ActionExcluded):
                self.action.exclude(problem.rule.key, explain(problem))
            else:
                self.action.skip_automatically(explain(problem))
            return self.end(phase, hold=True)
        if not hasattr(self, "action_type"):
            self.action.fail("pre_condition", explain(problem))
            return self.end(phase, hold=True)
        return self.conclude(phase, problem, hold=True, records=self.operations())

    def execute_and_end(self, execute: ActionEvent) -> bool:
        """Call the type, and end or release the action according to its answer."""
        problem = self.perform(execute, self.call_type)
        if problem is None and self.outcome.answer is Answer.RETRY:
            return self.unless_signalled(execute, self.defer)
        if problem is None and self.outcome.answer is Answer.WAIT:
            return self.unless_signalled(execute, self.derive)
        if problem is None and self.outcome.answer is Answer.CANCEL:
            return self.cancel_itself(execute)
        return self.conclude(execute, problem)

    def cancel_itself(self, execute: ActionEvent) -> bool:
        self.finish(execute, Result.CANCELLED, self.outcome.reason)
        self.action.request_abort()
        reason = self.outcome.reason
        self.action.finish_abort(GAVE_ITSELF_UP_BECAUSE.fill(reason=reason) if reason else CANCELLED_ALONE.text)
        return self.end(execute)

    def conclude(self, phase: ActionEvent, problem: BaseException | None, **how: Any) -> bool:
        """Call post_condition, and end the action: FAILED with the first error, or SUCCEEDED."""
        # From here on, a cancellation or a timeout does not change the result.
        self.checkpoint.is_interruptible = False
        post = self.begin("post_condition")
        post_problem = self.perform(post, self.action_type.post_condition)
        if problem:
            self.action.fail(phase.event, explain(problem))
        elif post_problem:
            self.action.fail("post_condition", explain(post_problem))
        else:
            self.action.succeed()
        return self.end(phase, post, **how)

    # Calls of the action type.

    def load(self) -> None:
        action = self.action
        context = ActionContext(
            action_uuid=str(action.uuid),
            outputs=action.outputs,
            data=action.data,
            is_derived=action.derived_from_id is not None,
            timeout=action.timeout,
            **self.services(),
        )
        self.action_type = make(action.action_type, action.input_parameters, context)

    def check(self) -> None:
        self.checkpoint.is_interruptible = True
        self.check_exclusions()
        self.load()
        self.action_type.pre_condition()
        # The pre_condition may have taken long, and the rules may have changed.
        self.check_exclusions()

    def call_type(self) -> None:
        self.checkpoint.is_interruptible = True
        if self.action.has_derived:
            self.load()
        self.outcome = require_success(self.action, self.call())
        if self.outcome.answer is Answer.WAIT:
            self.checkpoint.check()  # An action that is being cancelled derives nothing.

    def call_recover(self) -> None:
        self.load()
        # go_on of a type may be called repeatedly, so that its progress does not matter.
        self.recovery = Recovery.AGAIN if self.action.has_derived else self.action_type.recover()


def require_success(action: Action, outcome: Outcome) -> Outcome:
    """Return the outcome if it is not a failure.

    Raises:
        ActionFailed: it is a failure, or exceeds the number of retries.
    """
    answer, reason = outcome.answer, outcome.reason
    counts = answer is Answer.RETRY and not action.may_wait_for(outcome.until, outcome.lock_holder)
    if counts and action.retries >= settings.ACTION_RETRIES:
        raise ActionFailed(RETRIES_EXCEEDED.fill(number=settings.ACTION_RETRIES, reason=reason))
    if answer in REASONS:
        raise ActionFailed(reason or REASONS[answer].fill(uuid=action.uuid))
    return outcome


def call_method(action_type: ActionType, method: str, has_planned: bool = False) -> Outcome:
    """Call a method of an action type, and return its outcome.

    Args:
        method: the name of the method.
        has_planned: whether there are planned actions for which the action may wait.

    Raises:
        ActionFailed: the answer is invalid.
        Invalid: the derived actions are not a valid graph.
    """
    try:
        outcome = getattr(action_type, method)()
    except CloudBusy as busy:
        return Outcome(Answer.RETRY, explain(busy), until=busy.until)
    if flaw := find_flaw(outcome, has_planned):
        raise ActionFailed(f"{method} of actions of type {action_type.name} {flaw}")
    if outcome.derived:
        check_graph(outcome.derived)
    return outcome


def find_flaw(outcome: object, has_planned: bool = False) -> str | None:
    """Return a description of the error in the outcome of a plug-in, or None."""
    if not isinstance(outcome, Outcome):
        return f"does not return an Outcome, but {outcome!r:.40}"
    if not isinstance(outcome.derived, list | tuple):
        return f"derives no list of actions, but {outcome.derived!r:.40}"
    if outcome.answer is Answer.WAIT and not outcome.derived and not has_planned:
        return "waits, and derives no action to wait for"
    if outcome.answer is not Answer.WAIT and outcome.derived:
        return f"derives actions, and answers {outcome.answer.name} instead of WAIT"
    invalid = [child for child in outcome.derived if not isinstance(child, ProposedAction)]
    return f"derives an object that is not a ProposedAction: {invalid[0]!r:.40}" if invalid else None


class ActionExcluded(ActionSkipException):
    """An exclusion prevents the execution of the action."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule.message)
        self.rule = rule


class ExclusionCheck:
    """The check of one action against the exclusions, between its pre_condition and its beginning."""

    def __init__(self, action: Action) -> None:
        self.action = action
        self.rules = cached_rules()
        self.checked: set[int | None] = set()

    def check(self) -> None:
        """Check the action against the rules in force that were not checked before.

        Raises:
            ActionExcluded: one of them excludes it.
        """
        if self.find() is None:
            return
        # The cached rule may have been deleted, so check the current rules.
        self.rules = current_rules()
        self.checked.clear()
        if rule := self.find():
            raise ActionExcluded(rule)

    def find(self) -> Rule | None:
        """Return a rule that excludes the action and was not checked before, or None."""
        now = timezone.now()
        rules = [rule for rule in self.rules.rules if rule.key not in self.checked and rule.is_in_force(now)]
        if not rules:
            return None
        match = find_excluded([self.action], rules).get(self.action.uuid)
        self.checked.update(rule.key for rule in rules)
        return match.rule if match else None

    def is_outdated(self) -> bool:
        """Return whether the rules have changed since they were read."""
        return current_rules() is not self.rules
