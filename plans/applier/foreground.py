"""One plan in the foreground: `manage.py apply_plan` runs it to its end and displays its progress."""

import logging
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from actions.console.descriptions import in_order
from actions.models import Action
from plans.applier.applier import Applier
from plans.executors import Executor
from plans.models import ActionPlan
from plans.planning.scheduling import why_it_waits
from watcher_site.models import Service
from watcher_site.processes.command_line import INTERRUPTED
from watcher_site.state_machine import ConcurrentTransition, TransitionNotAllowed
from watcher_site.terminal.output import STYLES

PENDING = Action.State.PENDING
QUESTION = "Interrupted. [c]ancel the plan, [l]eave it to other appliers, or go on [Enter]? "
# How often what is shown is read anew, in seconds.
REFRESH = 0.3
UNSUCCESSFUL = (Action.State.FAILED, Action.State.SKIPPED, Action.State.CANCELLED)
# Of so many actions that ended at once one reads; the others are counted.
MOST_NAMED = 20
NO_APPLIER = "No applier is running: the plan begins when one is started, such as by manage.py run_applier."


class Choice(Enum):
    """The choice of a person who pressed Ctrl-C."""

    GO_ON = ""
    CANCEL = "c"
    LEAVE = "l"


class Display:
    """Lines of text, and at a terminal a bar below them, from `start` to `stop`."""

    def __init__(self, stream: Any) -> None:
        self.console = Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True)
        self.bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[states]}", markup=False),
            TimeElapsedColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.task = self.bar.add_task("", total=None, states="")
        self.follows = ""
        self.why = ""

    def start(self) -> None:
        self.bar.start()
        # The bar moves aside for what is written to stderr; the log is to be written where it then leads to.
        self.lead_log(sys.stderr)

    def stop(self) -> None:
        self.bar.stop()
        self.lead_log(sys.stderr)

    def lead_log(self, stream: Any) -> None:
        for handler in logging.getLogger().handlers:
            if type(handler) is logging.StreamHandler and self.console.is_terminal:
                handler.setStream(stream)

    def show(self, state: str, counts: Mapping[str, int], host: str | None) -> None:
        """Show how far a plan is; ``host`` is that of another applier, which runs it."""
        if host and host != self.follows:
            self.say(f"The applier on {host} runs it; this follows its work.")
        self.follows = host or ""
        ended = sum(counts.get(final, 0) for final in Action.FINAL)
        states = ", ".join(f"{count} {name}" for name, count in in_order(counts).items() if name != PENDING)
        self.bar.update(self.task, description=state, total=sum(counts.values()), completed=ended, states=states)

    def wait(self, why: str) -> None:
        """Print once why no action begins, unless there is no reason."""
        if why and why != self.why:
            self.say(why)
        self.why = why

    def tell(self, state: str, words: str) -> None:
        """Write what became of something."""
        self.console.print(f"{state} {words}".rstrip(), style=STYLES.get(state))

    def say(self, words: str) -> None:
        self.console.print(words)

    def ask(self) -> Choice:
        """Ask how to proceed with the plan. Without a terminal, or on another Ctrl-C, it is left to the appliers."""
        if not (self.console.is_terminal and sys.stdin.isatty()):
            return Choice.LEAVE
        self.stop()
        try:
            return self.read_choice()
        except (EOFError, KeyboardInterrupt):
            return Choice.LEAVE
        finally:
            self.start()

    def read_choice(self) -> Choice:
        """Ask until the answer is one of the choices."""
        while True:
            answer = self.console.input(QUESTION, markup=False).strip().lower()
            for choice in Choice:
                if answer in (choice.value, choice.name.lower()):
                    return choice
            self.say("Please answer c, l, or just Enter.")


@dataclass
class Shown:
    """The plan as it was last read, and its unsuccessful actions that were printed."""

    plan: ActionPlan
    counts: dict[str, int] = field(default_factory=dict)
    reported: set[int] = field(default_factory=set)

    @classmethod
    def begin(cls, plan: ActionPlan) -> Self:
        """Return the plan as it is now; its actions that have ended already are not printed."""
        ended = plan.actions.all().filter(state__in=UNSUCCESSFUL)
        return cls(plan, reported=set(ended.values_list("pk", flat=True)))

    def update(self, display: Display, applier: int | None = None) -> None:
        """Read the plan again, and display its progress.

        Args:
            applier: the key of the applier that displays it, if one does.
        """
        self.plan = plan = ActionPlan.objects.get(pk=self.plan.pk)
        self.counts = plan.actions.all().count_states()
        if sum(self.counts.get(state, 0) for state in UNSUCCESSFUL) != len(self.reported):
            self.tell_of_unsuccessful(display)
        display.wait(why_it_waits(plan))
        is_ours = plan.applier_id in (None, applier)
        display.show(plan.state, self.counts, None if is_ours else plan.hostname)

    def tell_of_unsuccessful(self, display: Display) -> None:
        actions = self.plan.actions.all().filter(state__in=UNSUCCESSFUL)
        keys = actions.order_by("updated_at", "pk").values_list("pk", flat=True)
        new = [key for key in keys if key not in self.reported]
        for action in actions.filter(pk__in=new[:MOST_NAMED]).order_by("updated_at", "pk"):
            display.tell(action.state, f"{action.called} ({action.uuid}): {action.status_message}")
        if len(new) > MOST_NAMED:
            display.say(f"… and {len(new) - MOST_NAMED} more.")
        self.reported.update(new)


def follow(plan: ActionPlan, display: Display, seconds: float | None = None) -> ActionPlan:
    """Display the progress of a plan that appliers run, and return it at its end, or after so many seconds."""
    shown = Shown.begin(plan)
    end = None if seconds is None else time.monotonic() + seconds
    display.start()
    try:
        shown.update(display)
        if shown.plan.state not in ActionPlan.FINAL and not Service.objects.active().appliers().exists():
            display.say(NO_APPLIER)
        while shown.plan.state not in ActionPlan.FINAL and (end is None or time.monotonic() < end):
            time.sleep(REFRESH)
            shown.update(display)
    finally:
        display.stop()
    if shown.plan.state in ActionPlan.FINAL:
        display.tell(shown.plan.state, shown.plan.status_message or "")
    else:
        display.say(f"The action plan is still {shown.plan.state} after {seconds:g} seconds.")
    return shown.plan


class ForegroundApplier(Applier):
    """An applier of a single plan. Where another one was first to claim it, it follows that one's work.

    Should that one die, it takes over, as every applier does: the table decides who runs the plan.
    """

    def __init__(self, plan: ActionPlan, executor: Executor, display: Display, by: str) -> None:
        super().__init__(executor)
        self.plans = ActionPlan.objects.filter(pk=plan.pk)
        self.display, self.by = display, by
        self.shown = Shown.begin(plan)
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
        self.shown.update(self.display, self.service.pk)

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
            signal.signal(signal.SIGINT, leave_at_once)
            self.display.say("What runs comes to its end first. Ctrl-C leaves at once.")
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
