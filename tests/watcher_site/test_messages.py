"""Messages for users have no control characters that a terminal or a browser interprets, and are cut at words."""

import pytest

from actions.models import Action
from actions.types.base import ActionFailed, explain
from watcher_site.messages import cut, without_controls


@pytest.mark.parametrize("control", ["\x1b[31m", "\x07", "\u202e", "\u2066", "\x9b", "\r"])
def test_error_message_has_no_control_characters(control: str) -> None:
    kept = control.removeprefix("\x1b") if control.startswith("\x1b") else ""
    assert explain(ActionFailed(f"red{control} text")) == f"red{kept} text"
    assert cut(f"red{control} text") == f"red{kept} text"


def test_tabs_line_ends_and_other_characters_are_kept() -> None:
    assert without_controls("Größe\t5\n日本語") == "Größe\t5\n日本語"


def test_outcome_of_an_action_has_no_control_characters() -> None:
    action = Action(state="ONGOING")
    action.fail("execute", "red\u202e text")
    assert action.status_message == "Action failed in execute: red text"
    assert action.outputs == {"error": "red text"}


UUID = "156274ba-0b8c-4c3c-8a2c-6a1f6c3d2f11"


@pytest.mark.parametrize(
    ("text", "length", "expected"),
    [
        (f"Instance {UUID} is not running", 55, f"Instance {UUID} is not…"),
        (f"The instance of the server {UUID} stopped", 50, "The instance of the server…"),
        (f"Instance {UUID} is not running", 20, "Instance…"),
        ("Compute node compute-of-the-second-zone-07 is off", 24, "Compute node…"),
        ("x" * 50, 20, f"{'x' * 19}…"),
    ],
)
def test_text_is_not_cut_within_a_uuid_or_a_name(text: str, length: int, expected: str) -> None:
    assert cut(text, length) == expected
