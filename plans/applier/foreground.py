"""The applier of `manage.py apply_plan`, which runs one plan in the foreground and displays its progress."""

import logging
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from select import select
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from actions.console.descriptions import order_state_counts
from actions.models import Action
from plans.applier.applier import Applier
from plans.executors import Executor
from plans.models import ActionPlan
from plans.planning.scheduling import explain_waiting
from watcher_site.console.naming import add_names
from watcher_site.models import Service
from watcher_site.processes.command_line import INTERRUPTED
from watcher_site.refusals import NotFound
from watcher_site.state_machine import ConcurrentTransition, TransitionNotAllowed
from watcher_site.terminal.output import STYLES

PENDING = Action.State.PENDING
QUESTION = "Interrupted. [c]ancel the plan, [l]eave it to other appliers, or continue [Enter]? "
# The interval between updates of the display, in seconds.
REFRESH = 0.3
UNSUCCESSFUL = (Action.State.FAILED, Action.State.SKIPPED, Action.State.CANCELLED)
# The number of actions that one update prints. Further ones are only counted.
MOST_NAMED = 20
NO_APPLIER = "No applier is running: the plan begins when one is started, such as by manage.py run_applier."


class Choice(Enum):
    """The choices after Ctrl-C."""

    GO_ON = ""
    CANCEL = "c"
    LEAVE = "l"


class Display:
    """Printed lines and, at a terminal, a progress bar below them, from `start` to `stop`."""

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
        # The progress bar replaces sys.stderr, so that lines do not overwrite it. The log must use the replacement.
        self.redirect_log(sys.stderr)

    def stop(self) -> None:
        self.bar.stop()
        self.redirect_log(sys.stderr)

    def redirect_log(self, stream: Any) -> None:
        for handler in logging.getLogger().handlers:
            if type(handler) is logging.StreamHandler and self.console.is_terminal:
                handler.setStream(stream)

    def show(self, state: str, counts: Mapping[str, int], host: str | None) -> None:
        """Show the progress of a plan. ``host`` is the one of another applier that runs it, or None."""
        if host and host != self.follows:
            self.print(f"The applier on {host} runs it; this follows its work.")
        self.follows = host or ""
        ended = sum(counts.get(final, 0) for final in Action.FINAL)
        states = ", ".join(f"{count} {name}" for name, count in order_state_counts(counts).items() if name != PENDING)
        self.bar.update(self.task, description=state, total=sum(counts.values()), completed=ended, states=states)

    def wait(self, why: str) -> None:
        """Print the reason why no action begins, if there is one, and only when it changes."""
        if why and why != self.why:
            self.print(why)
        self.why = why

    def print_state(self, state: str, text: str) -> None:
        """Print a line that begins with a state, in the colour of the state."""
        self.console.print(f"{state} {text}".rstrip(), style=STYLES.get(state))

    def print_end(self, plan: ActionPlan) -> None:
        """Print the final state of a plan with its message, in which the objects have names and UUIDs."""
        (message,) = add_names([plan.status_message or ""], {})
        self.print_state(plan.state, message)

    def print(self, text: str) -> None:
        self.console.print(text)

    def ask(self) -> Choice:
        """Prompt how to proceed with the plan. Returns LEAVE without a terminal or after another Ctrl-C."""
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
        """Prompt until the input is one of the choices."""
        while True:
            self.console.print(QUESTION, end="")
            answer = read_line().strip().lower()
            for choice in Choice:
                if answer in (choice.value, choice.name.lower()):
                    return choice
            self.print("Please answer c, l, or just Enter.")


def read_line() -> str:
    """Return a line of the standard input.

    A signal that arrives just before a blocking read does not interrupt it. The descriptor for wake-ups is readable
    after each signal, so that its handler runs before a line is complete.

    Raises:
        EOFError: the input has ended.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    previous = signal.set_wakeup_fd(writing)
    try:
        select([sys.stdin, reading], [], [])
    finally:
        signal.set_wakeup_fd(previous)
        os.close(reading)
        os.close(writing)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line


@dataclass
class ShownPlan:
    """The plan as it was last read, and the unsuccessful actions that were printed."""

    plan: ActionPlan
    counts: dict[str, int] = field(default_factory=dict)
    reported: set[int] = field(default_factory=set)

    @classmethod
    def begin(cls, plan: ActionPlan) -> Self:
        """Return the current plan. Its actions that have ended already will not be printed."""
        ended = plan.actions.all().filter(state__in=UNSUCCESSFUL)
        return cls(plan, reported=set(ended.values_list("pk", flat=True)))

    def update(self, display: Display, applier: int | None = None) -> None:
        """Read the plan again, and display its progress.

        Args:
            applier: the key of the applier in this process, if there is one.

        Raises:
            NotFound: the plan was purged.
        """
        self.plan = plan = ActionPlan.objects.reread(self.plan)
        self.counts = plan.actions.all().count_states()
        if sum(self.counts.get(state, 0) for state in UNSUCCESSFUL) != len(self.reported):
            self.print_unsuccessful(display)
        display.wait(explain_waiting(plan))
        is_ours = plan.applier_id in (None, applier)
        display.show(plan.state, self.counts, None if is_ours else plan.hostname)

    def print_unsuccessful(self, display: Display) -> None:
        actions = self.plan.actions.all().filter(state__in=UNSUCCESSFUL)
        keys = actions.order_by("updated_at", "pk").values_list("pk", flat=True)
        new = [key for key in keys if key not in self.reported]
        named = list(actions.filter(pk__in=new[:MOST_NAMED]).order_by("updated_at", "pk"))
        known = {uuid: name for action in named for uuid, name in action.known_names.items()}
        messages = add_names([action.status_message or "" for action in named], known)
        for action, message in zip(named, messages, strict=True):
            display.print_state(action.state, f"{action.called} ({action.uuid}): {message}")
        if len(new) > MOST_NAMED:
            display.print(f"… and {len(new) - MOST_NAMED} more.")
        self.reported.update(new)


def follow_plan(plan: ActionPlan, display: Display, seconds: float | None = None) -> ActionPlan:
    """Display the progress of a plan that appliers run, and return it at its end, or after ``seconds``."""
    shown = ShownPlan.begin(plan)
    end = None if seconds is None else time.monotonic() + seconds
    display.start()
    try:
        shown.update(display)
        if shown.plan.state not in ActionPlan.FINAL and not Service.objects.active().appliers().exists():
            display.print(NO_APPLIER)
        while shown.plan.state not in ActionPlan.FINAL and (end is None or time.monotonic() < end):
            time.sleep(REFRESH)
            shown.update(display)
    finally:
        display.stop()
    if shown.plan.state in ActionPlan.FINAL:
        display.print_end(shown.plan)
    else:
        display.print(f"The action plan is still {shown.plan.state} after {seconds:g} seconds.")
    return shown.plan


class ForegroundApplier(Applier):
    """An applier of a single plan.

    If another applier claimed the plan first, it displays the progress, and takes the plan over if that one is lost.
    """

    # It may wait for the answer of a user.
    longest_turn = inf

    def __init__(self, plan: ActionPlan, executor: Executor, display: Display, by: str) -> None:
        super().__init__(executor)
        self.plans = ActionPlan.objects.filter(pk=plan.pk)
        self.display, self.by = display, by
        self.shown = ShownPlan.begin(plan)
        self.next_refresh = 0.0
        self.interrupted = False

    @property
    def is_idle(self) -> bool:
        return self.shown.plan.state in ActionPlan.FINAL and not self.runs

    def step(self) -> None:
        if self.interrupted:
            self.prompt_user()
        super().step()
        if time.monotonic() >= self.next_refresh or not self.runs:
            self.show()

    def show(self) -> None:
        self.next_refresh = time.monotonic() + REFRESH
        self.shown.update(self.display, self.service.pk)

    # Ctrl-C.

    def stop_on_signals(self) -> None:
        """Release the plan on SIGTERM, and ask how to proceed with it on SIGINT."""
        super().stop_on_signals()

        def interrupt(*_: Any) -> None:
            self.interrupted = True

        signal.signal(signal.SIGINT, interrupt)

    def prompt_user(self) -> None:
        """Prompt how to proceed after Ctrl-C. The running actions continue meanwhile."""
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
        plan = ActionPlan.objects.reread(self.shown.plan)
        try:
            plan.abandon(self.by)
        except (NotFound, TransitionNotAllowed, ConcurrentTransition):
            self.display.print(f"Not cancelled: the action plan is {ActionPlan.objects.reread(plan).state}.")
        self.poll_soon()

    def stop(self) -> None:
        if self.jobs:
            signal.signal(signal.SIGINT, exit_immediately)
            self.display.print("Waiting for the running actions to end. Ctrl-C exits immediately.")
        super().stop()
        self.shown.plan = ActionPlan.objects.reread(self.shown.plan)


def describe_continuation(plan: ActionPlan) -> str:
    """Return a message about the continuation of an unfinished plan."""
    if why := explain_waiting(plan):
        return f"The action plan is {plan.state}. {why} The next free applier continues it then."
    return f"The action plan is {plan.state}. The next free applier continues it."


def exit_immediately(*_: Any) -> None:
    """Exit as if killed. Other appliers take over the plan when the lease of this one has expired."""
    os._exit(INTERRUPTED)
