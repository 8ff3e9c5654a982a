"""One plan, run to its end before the eyes of a person: `manage.py apply_plan`."""

import os
import signal
import time
from dataclasses import dataclass, field
from typing import Any

from actions.models import Action
from plans.applier.applier import Applier
from plans.applier.display import Choice, Display
from plans.executors import Executor
from plans.models import ActionPlan
from plans.planning.schedule_text import why_it_waits
from watcher_site.processes.command_line import INTERRUPTED
from watcher_site.state_machine import ConcurrentTransition, TransitionNotAllowed

# How often what is shown is read anew, in seconds.
REFRESH = 0.3
UNSUCCESSFUL = (Action.State.FAILED, Action.State.SKIPPED, Action.State.CANCELLED)
# Of so many actions that ended at once one reads; the others are counted.
MOST_NAMED = 20


@dataclass
class Shown:
    """The plan as it was last read, and its unsuccessful actions that were printed."""

    plan: ActionPlan
    counts: dict[str, int] = field(default_factory=dict)
    reported: set[int] = field(default_factory=set)


class ForegroundApplier(Applier):
    """An applier of a single plan. Where another one was first to claim it, it follows that one's work.

    Should that one die, it takes over, as every applier does: the table decides who runs the plan.
    """

    def __init__(self, plan: ActionPlan, executor: Executor, display: Display, by: str) -> None:
        super().__init__(executor)
        self.plans = ActionPlan.objects.filter(pk=plan.pk)
        self.display, self.by = display, by
        ended = plan.actions.all().filter(state__in=UNSUCCESSFUL)
        self.shown = Shown(plan, reported=set(ended.values_list("pk", flat=True)))
        self.next_tell = 0.0
        self.interrupted = False

    @property
    def is_idle(self) -> bool:
        return self.shown.plan.state in ActionPlan.FINAL and not self.runs

    def step(self) -> None:
        if self.interrupted:
            self.decide()
        super().step()
        if time.monotonic() >= self.next_tell or not self.runs:
            self.tell()

    # What a person sees of it.

    def tell(self) -> None:
        self.next_tell = time.monotonic() + REFRESH
        shown = self.shown
        shown.plan = plan = self.plans.get()
        shown.counts = plan.actions.all().count_states()
        if sum(shown.counts.get(state, 0) for state in UNSUCCESSFUL) != len(shown.reported):
            self.tell_of_unsuccessful()
        self.display.wait(why_it_waits(plan))
        is_ours = plan.applier_id in (None, self.service.pk)
        self.display.show(plan.state, shown.counts, None if is_ours else plan.hostname)

    def tell_of_unsuccessful(self) -> None:
        actions = self.shown.plan.actions.all().filter(state__in=UNSUCCESSFUL)
        reported = self.shown.reported
        new = [key for key in actions.order_by("updated_at", "pk").values_list("pk", flat=True) if key not in reported]
        for action in actions.filter(pk__in=new[:MOST_NAMED]).order_by("updated_at", "pk"):
            self.display.tell(action.state, f"{action.called} ({action.uuid}): {action.status_message}")
        if len(new) > MOST_NAMED:
            self.display.say(f"… and {len(new) - MOST_NAMED} more.")
        reported.update(new)

    # Ctrl-C.

    def stop_on_signals(self) -> None:
        """Release the plan on SIGTERM, and ask how to proceed with it on SIGINT."""
        super().stop_on_signals()

        def interrupt(*_: Any) -> None:
            self.interrupted = True

        signal.signal(signal.SIGINT, interrupt)

    def decide(self) -> None:
        """Do what a person wants who pressed Ctrl-C. What runs goes on meanwhile."""
        previous = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            choice = self.display.ask()
        finally:
            signal.signal(signal.SIGINT, previous)
        self.interrupted = False
        if choice is Choice.CANCEL:
            self.abandon()
        elif choice is Choice.LEAVE:
            self.stopping = True

    def abandon(self) -> None:
        plan = self.plans.get()
        try:
            plan.abandon(self.by)
        except (TransitionNotAllowed, ConcurrentTransition):
            self.display.say(f"Not cancelled: the action plan is {self.plans.get().state}.")
        self.look_soon()

    def stop(self) -> None:
        if self.jobs:
            self.display.say("What runs comes to its end first. Ctrl-C leaves at once.")
            signal.signal(signal.SIGINT, leave_at_once)
        super().stop()
        self.shown.plan = self.plans.get()


def left_in_words(plan: ActionPlan) -> str:
    """Return a sentence on how a plan continues that was left before its end."""
    if why := why_it_waits(plan):
        return f"The action plan is {plan.state}. {why} The next applier that is free goes on with it then."
    return f"The action plan is {plan.state} and goes on with the next applier that is free."


def leave_at_once(*_: Any) -> None:
    """End this process as if it were killed: others recover what it held, once its lease has run out."""
    os._exit(INTERRUPTED)
