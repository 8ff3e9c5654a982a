"""The phases of an action: their order, and the consequences of their results for the action.

An execution and the dry run of a preflight both go through them. `ActionPhases` changes the action in memory and
writes nothing; its subclasses supply the writes, the checkpoint and the context.
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

from actions.exclusions.matching import excluded
from actions.exclusions.rules import Rule, cached_rules, current_rules
from actions.graph.proposals import ProposedAction, check_graph
from actions.models import Action, ActionEvent
from actions.models.actions import GAVE_ITSELF_UP
from actions.types.base import (
    OWN_EXCEPTIONS,
    ActionContext,
    ActionFailed,
    ActionSkipException,
    ActionType,
    Answer,
    DerivedAction,
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
TOO_LONG = "It took longer than {} seconds"
# What is said of an execute that failed and gave no reason.
REASONS = {
    Answer.ERROR: "The action {} execution failed.",
    Answer.TIMEOUT: "The action {} execution took too long.",
}


class Stop(Protocol):
    """The part of a checkpoint that the phases use."""

    goes_forward: bool
    """Whether the current work can be aborted or time out: other work stops only for a lost lease."""

    def look(self) -> None:
        """Return when the action may go on."""


class PhaseRecord:
    """The record of an action's phases, in memory."""

    phase: ActionEvent
    """The phase that was begun last."""
    began: datetime | None = None
    """When the first phase was begun."""

    def __init__(self, action: Action, host: str = "") -> None:
        self.action, self.host = action, host

    @cached_property
    def log(self) -> Any:
        return log.bind(action=str(self.action.uuid), action_type=self.action.action_type)

    def begin(self, event: str) -> ActionEvent:
        now = timezone.now()
        self.began = self.began or now
        self.phase = ActionEvent(action=self.action, event=event, start_time=now, host=self.host)
        return self.phase

    def finish(self, phase: ActionEvent, result: str, details: str | None = None) -> None:
        phase.finish_time, phase.result, phase.details = timezone.now(), result, details and cut(details)

    def perform(self, phase: ActionEvent, work: Callable[[], None]) -> BaseException | None:
        """Do the work of a phase, and return its error, even an exit: it ends the action, not the worker.

        A lost database is not the action's failure: it is raised.
        """
        try:
            work()
        except (*LOST_DATABASE, Interruption):
            raise
        except BaseException as problem:
            self.log_failure(phase, problem)
            self.finish(phase, Result.ERROR, explain(problem))
            # A later phase may fail as well.
            self.action.fault = self.action.fault or payloads.describe_fault(problem, explain(problem))
            return problem
        self.finish(phase, Result.SUCCESS)
        return None

    def log_failure(self, phase: ActionEvent, problem: BaseException) -> None:
        """Log the error of a phase, with the traceback of an unexpected one."""
        if isinstance(problem, ActionSkipException):
            return
        unexpected = None if isinstance(problem, OWN_EXCEPTIONS) else problem
        reason = explain(problem, is_for_log=True)
        self.log.warning("action phase failed", phase=phase.event, problem=reason, exc_info=unexpected)


class ActionPhases(PhaseRecord, ABC):
    """The phases of one action, from its beginning or its recovery to its end, a deferral or the wait for others."""

    action_type: ActionType
    checkpoint: Stop
    outcome: Outcome
    recovery: Recovery

    # Supplied by subclasses.

    owner: int | None = None
    """The service that executes the action."""

    @abstractmethod
    def find_derived(self) -> Sequence[DerivedAction]:
        """Return the actions that this one derived."""

    def services(self) -> Mapping[str, Any]:
        """Return the callables of the type's context, as far as they are not the default ones."""
        return {}

    @abstractmethod
    def check_exclusions(self) -> None:
        """Raises: `ActionExcluded`."""

    @abstractmethod
    def call(self) -> Outcome:
        """Call the method of the type that does the work."""

    def operations(self) -> Sequence[Model]:
        """Return rows, not yet written, for the operations on servers that begin with the action."""
        return ()

    @abstractmethod
    def write(self, *phases: ActionEvent, hold: bool = ..., guards: Mapping[str, Any] | None = ...) -> bool:
        """Write the action's state together with the phases."""

    @abstractmethod
    def write_beginning(self, *phases: ActionEvent) -> bool:
        """Write the beginning, and return true, or false if the exclusions are to be checked again before it."""

    @abstractmethod
    def end(self, *phases: ActionEvent, **how: Any) -> bool:
        """Write the end of the action, or its release."""

    @property
    def no_other_signal(self) -> Mapping[str, Any]:
        """Return guards that keep the worker from overwriting a signal that it has not seen."""
        return {"control": self.action.control}

    def unless_signalled(self, execute: ActionEvent, release: Callable[[ActionEvent], bool]) -> bool:
        """Release the action, unless a signal to it arrives meanwhile."""
        return release(execute)

    @abstractmethod
    def defer(self, execute: ActionEvent) -> bool:
        """Defer the action and release it."""

    @abstractmethod
    def derive(self, execute: ActionEvent) -> bool:
        """Release the action until the actions that it derives have ended."""

    # The order.

    def run(self) -> bool:
        """Run a PENDING action."""
        if self.action.has_derived:
            return self.take_up()
        while True:
            phase = self.begin("pre_condition")
            problem = self.perform(phase, self.check)
            if problem:
                return self.leave_out(phase, problem)
            execute = self.begin("execute")
            self.action.begin(self.owner)
            if self.write_beginning(phase, execute):
                return self.carry_out(execute)

    def take_up(self) -> bool:
        """Continue an action whose derived actions have ended."""
        phase = self.begin("go_on")
        self.action.begin(self.owner)
        return self.write(phase, hold=True, guards=self.no_other_signal) and self.carry_out(phase)

    def go_on(self, phase: ActionEvent) -> bool:
        """Continue an action whose worker was lost, as its type's recover decides."""
        problem = self.perform(phase, self.ask_recovery)
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
        if not hasattr(self, "action_type"):
            self.action.fail("pre_condition", explain(problem))
            return self.end(phase, hold=True)
        return self.conclude(phase, problem, hold=True, records=self.operations())

    def carry_out(self, execute: ActionEvent) -> bool:
        """Do the work, and act on its answer."""
        problem = self.perform(execute, self.work)
        if problem is None and self.outcome.answer is Answer.RETRY:
            return self.unless_signalled(execute, self.defer)
        if problem is None and self.outcome.answer is Answer.WAIT:
            return self.unless_signalled(execute, self.derive)
        if problem is None and self.outcome.answer is Answer.CANCEL:
            return self.give_itself_up(execute)
        return self.conclude(execute, problem)

    def give_itself_up(self, execute: ActionEvent) -> bool:
        self.finish(execute, Result.CANCELLED, self.outcome.reason)
        self.action.request_abort()
        self.action.finish_abort(f"{GAVE_ITSELF_UP} {self.outcome.reason}".strip())
        return self.end(execute)

    def conclude(self, phase: ActionEvent, problem: BaseException | None, **how: Any) -> bool:
        """Call post_condition, and end the action by the first error, if there was one."""
        self.checkpoint.goes_forward = False  # The result stays if the action is cancelled or times out from here on.
        post = self.begin("post_condition")
        post_problem = self.perform(post, self.action_type.post_condition)
        if problem:
            self.action.fail(phase.event, explain(problem))
        elif post_problem:
            self.action.fail("post_condition", explain(post_problem))
        else:
            self.action.succeed()
        return self.end(phase, post, **how)

    # The work of the phases.

    def load(self) -> None:
        action = self.action
        context = ActionContext(
            action_uuid=str(action.uuid),
            find_derived=self.find_derived,
            outputs=action.outputs,
            data=action.data,
            is_derived=action.derived_from_id is not None,
            timeout=action.timeout,
            **self.services(),
        )
        self.action_type = make(action.action_type, action.input_parameters, context)

    def check(self) -> None:
        self.checkpoint.goes_forward = True
        self.check_exclusions()
        self.load()
        self.action_type.pre_condition()
        # The pre_condition may have taken long.
        self.check_exclusions()

    def work(self) -> None:
        self.checkpoint.goes_forward = True
        if self.action.has_derived:
            self.load()
        self.outcome = require_success(self.action, self.call())
        if self.outcome.answer is Answer.WAIT:
            self.checkpoint.look()  # An action that is being cancelled derives nothing.

    def ask_recovery(self) -> None:
        self.load()
        # go_on of a type may be called twice, so its state does not matter.
        self.recovery = Recovery.AGAIN if self.action.has_derived else self.action_type.recover()


def require_success(action: Action, outcome: Outcome) -> Outcome:
    """Return an outcome that is no failure. Raises: `ActionFailed`, also for one retry too many."""
    answer, reason = outcome.answer, outcome.reason
    counts = answer is Answer.RETRY and not action.may_wait_for(outcome.until, outcome.lock_holder)
    if counts and action.retries >= settings.ACTION_RETRIES:
        raise ActionFailed(f"Exceeded maximum number of retries ({settings.ACTION_RETRIES}): {reason}")
    if answer in REASONS:
        raise ActionFailed(reason or REASONS[answer].format(action.uuid))
    return outcome


def call_method(action_type: ActionType, method: str, has_planned: bool = False) -> Outcome:
    """Call a method of an action type, and return its answer.

    Args:
        method: its name.
        has_planned: whether there are planned actions that it may wait for.

    Raises:
        ActionFailed: the answer is invalid.
        Invalid: the derived actions are no valid graph.
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
    """Return what is wrong with an answer, if anything is."""
    if not isinstance(outcome, Outcome):
        return f"does not return an Outcome, but {outcome!r:.40}"
    if not isinstance(outcome.derived, list | tuple):
        return f"derives no list of actions, but {outcome.derived!r:.40}"
    if outcome.answer is Answer.WAIT and not outcome.derived and not has_planned:
        return "waits, and derives no action to wait for"
    if outcome.answer is not Answer.WAIT and outcome.derived:
        return f"derives actions, and answers {outcome.answer.name} in the place of WAIT"
    strays = [one for one in outcome.derived if not isinstance(one, ProposedAction)]
    return f"derives what is no ProposedAction, but {strays[0]!r:.40}" if strays else None


class ActionExcluded(ActionSkipException):
    """A rule keeps the action from being executed."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule.words)
        self.rule = rule


class ExclusionCheck:
    """The check of one action against the exclusions, from its pre_condition until it begins."""

    def __init__(self, action: Action) -> None:
        self.action = action
        self.rules = cached_rules()
        self.checked: set[int | None] = set()

    def check(self) -> None:
        """Check the action against the rules that are in force now and that it was not checked against before.

        Raises:
            ActionExcluded: one of them excludes it.
        """
        if self.find() is None:
            return
        # A rule that was deleted meanwhile excludes nothing.
        self.rules = current_rules()
        self.checked.clear()
        if rule := self.find():
            raise ActionExcluded(rule)

    def find(self) -> Rule | None:
        """Return the rule that excludes the action, if one does that it was not checked against before."""
        now = timezone.now()
        rules = [rule for rule in self.rules.rules if rule.key not in self.checked and rule.is_in_force(now)]
        if not rules:
            return None
        found = excluded([self.action], rules).get(self.action.uuid)
        self.checked.update(rule.key for rule in rules)
        return found.rule if found else None

    def is_outdated(self) -> bool:
        """Return whether the rules have changed since they were read."""
        return current_rules() is not self.rules
