"""A pause in a plan."""

import time

from actions.types.base import DONE, ActionType, Outcome, Recovery

SLICE_SECONDS = 0.1


class Sleep(ActionType):
    name = "sleep"
    description = "Wait for a given interval in seconds."
    schema = {
        "type": "object",
        "properties": {
            "duration": {
                "type": "number",
                "minimum": 0,
                "description": "The time to wait, in seconds. Fractions are ignored: 3.2 is 3.",
            }
        },
        "required": ["duration"],
        "additionalProperties": False,
    }

    def execute(self) -> Outcome:
        """Sleep for whole seconds, as existing plans expect: 3.2 is 3."""
        end = time.monotonic() + int(self.input_parameters["duration"])
        self.context.checkpoint()
        while (remaining := end - time.monotonic()) > 0:
            time.sleep(min(remaining, SLICE_SECONDS))
            self.context.checkpoint()
        return DONE

    def foresee(self) -> Outcome:
        return DONE

    def abort(self) -> bool:
        return True

    def revert(self) -> bool:
        return True

    def recover(self) -> Recovery:
        return Recovery.AGAIN
