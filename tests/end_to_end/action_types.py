"""Action types that end when a test permits it, or never."""

import time
from pathlib import Path

from actions.types.base import DONE, ActionType, Outcome


class Stuck(ActionType):
    """Sleeps forever without a checkpoint."""

    name = "stuck"
    description = "Never ends"
    schema = {"type": "object"}

    def execute(self) -> Outcome:
        while True:
            time.sleep(1)
        return DONE


class Nap(ActionType):
    """Ends when a file exists, so that tests need not estimate durations."""

    name = "nap"
    description = "Sleep until a file exists"
    schema = {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}

    def execute(self) -> Outcome:
        while not Path(self.input_parameters["file"]).exists():
            time.sleep(0.05)
            self.context.checkpoint()
        return DONE
