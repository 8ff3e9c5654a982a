"""Messages for users contain no control characters that a terminal or a browser would interpret."""

import pytest

from actions.models import Action
from actions.types.base import ActionFailed, explain
from watcher_site.messages import cut, without_controls


@pytest.mark.parametrize("control", ["\x1b[31m", "\x07", "\u202e", "\u2066", "\x9b", "\r"])
def test_a_message_of_an_error_holds_no_character_that_a_terminal_obeys(control: str) -> None:
    kept = control.removeprefix("\x1b") if control.startswith("\x1b") else ""
    assert explain(ActionFailed(f"red{control} text")) == f"red{kept} text"
    assert cut(f"red{control} text") == f"red{kept} text"


def test_tabs_line_ends_and_all_characters_stay() -> None:
    assert without_controls("Größe\t5\n日本語") == "Größe\t5\n日本語"


def test_the_outcome_of_an_action_holds_none_either() -> None:
    action = Action(state="ONGOING")
    action.fail("execute", "red\u202e text")
    assert action.status_message == "Action failed in execute: red text"
    assert action.outputs == {"error": "red text"}
