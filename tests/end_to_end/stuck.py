"""An action type whose execute reaches no checkpoint and never ends."""

import time

from actions.types.base import DONE, ActionType, Outcome


class Stuck(ActionType):
    name = "stuck"
    description = "Never comes to its end"
    schema = {"type": "object"}

    def execute(self) -> Outcome:
        while True:
            time.sleep(1)
        return DONE
