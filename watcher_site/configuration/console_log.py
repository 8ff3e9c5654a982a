"""The escapes of control characters in logs of the console format, which a terminal would interpret."""

import re
from collections.abc import MutableMapping
from io import StringIO
from typing import Any, TextIO

from structlog.dev import plain_traceback

# C0 without the tab, DEL, and C1.
CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f]")
CONTROLS_IN_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Values of several lines.
TEXTS = ("exception", "stack")


def escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def escape_controls(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escape the control characters in the texts of a log event. This is a processor of structlog."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = (CONTROLS_IN_LINES if name in TEXTS else CONTROLS).sub(escape, value)
    return event


def write_traceback(stream: TextIO, exception: Any) -> None:
    """Write a traceback with escaped control characters, and without local variables, which may contain secrets."""
    text = StringIO()
    plain_traceback(text, exception)
    stream.write(CONTROLS_IN_LINES.sub(escape, text.getvalue()))
