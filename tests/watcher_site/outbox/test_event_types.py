"""The documentation lists all event types."""

import re
from pathlib import Path

from watcher_site.notifications.subscriptions import known_event_types

DOCUMENT = Path(__file__).parents[3] / "docs" / "notifications.md"


def test_every_event_type_is_documented_and_no_other() -> None:
    section = DOCUMENT.read_text().split("## Events")[1].split("\n## ")[0]
    documented: list[str] = []
    for row in re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE):
        for name in re.findall(r"`([^`]+)`", row):
            documented.append(documented[-1].rpartition(".")[0] + name if name.startswith(".") else name)
    assert sorted(documented) == sorted(known_event_types())
