"""Action types for processes whose actions end only when a test wants it."""

import time
from pathlib import Path

from actions.types.base import DONE, ActionType, Outcome


class Stuck(ActionType):
    """Reaches no checkpoint and never ends."""

    name = "stuck"
    description = "Never comes to its end"
    schema = {"type": "object"}

    def execute(self) -> Outcome:
        while True:
            time.sleep(1)
        return DONE


class Nap(ActionType):
    """Ends when a file is there: no test has to guess how long others take meanwhile."""

    name = "nap"
    description = "Sleep until a file is there"
    schema = {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}

    def execute(self) -> Outcome:
        while not Path(self.input_parameters["file"]).exists():
            time.sleep(0.05)
            self.context.checkpoint()
        return DONE
