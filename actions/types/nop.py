"""An action without effect, with parameters that produce results for tests."""

import structlog

from actions.messages import NOP_FAILED, NOP_FAILED_AFTERWARDS, NOP_SKIPPED
from actions.types.base import DONE, ActionFailed, ActionSkipException, ActionType, Answer, Outcome, Recovery

log = structlog.get_logger(__name__)
SWITCH = {"type": "boolean", "default": False}


class Nop(ActionType):
    name = "nop"
    description = "Logging a NOP message"
    schema = {
        "type": "object",
        "properties": {
            "message": {"type": ["string", "null"], "description": "The text to log."},
            "skip_pre_condition": {**SWITCH, "description": "Skip the action, as a test."},
            "fail_pre_condition": {**SWITCH, "description": "Fail in pre_condition, as a test."},
            "fail_execute": {**SWITCH, "description": "Fail in execute, as a test."},
            "fail_post_condition": {**SWITCH, "description": "Fail in post_condition, as a test."},
        },
        "required": ["message"],
        "additionalProperties": False,
    }

    def pre_condition(self) -> None:
        if self.input_parameters["skip_pre_condition"]:
            raise ActionSkipException(NOP_SKIPPED.text)
        if self.input_parameters["fail_pre_condition"]:
            raise ActionFailed(NOP_FAILED.text)

    def execute(self) -> Outcome:
        log.debug("nop", message=self.input_parameters["message"])
        return Outcome(Answer.ERROR) if self.input_parameters["fail_execute"] else DONE

    def foresee(self) -> Outcome:
        return self.execute()

    def post_condition(self) -> None:
        if self.input_parameters["fail_post_condition"]:
            raise ActionFailed(NOP_FAILED_AFTERWARDS.text)

    def abort(self) -> bool:
        return True

    def revert(self) -> bool:
        return True

    def recover(self) -> Recovery:
        return Recovery.AGAIN
