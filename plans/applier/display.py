"""The terminal output for a plan that runs in the foreground: a progress bar at a terminal, else lines."""

import logging
import sys
from collections.abc import Mapping
from enum import Enum
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from actions.console.descriptions import in_order
from actions.models import Action

PENDING = Action.State.PENDING
STYLES = {"SUCCEEDED": "green", "FAILED": "bold red", "SKIPPED": "yellow", "CANCELLED": "magenta"}
QUESTION = "Interrupted. [c]ancel the plan, [l]eave it to other appliers, or go on [Enter]? "


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
