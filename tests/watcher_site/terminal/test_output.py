"""The output of commands as tables, JSON and CSV."""

from io import StringIO
from typing import Any

import orjson
import pytest
from django.core.management.base import OutputWrapper

from watcher_site.terminal.output import Printer

ROWS: list[dict[str, Any]] = [{"uuid": "a", "name": "=1+1", "size": -1, "on": True, "tags": {"a": 1}, "gone": None}]


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def printed(format: str, rows: list[dict[str, Any]], stream: StringIO | None = None, **options: Any) -> str:
    stream = stream or StringIO()
    printer = Printer(OutputWrapper(stream), format, frozenset({"created_at"}), "uuid", options)
    printer.print_list([rows], list(rows[0]) if rows else ["uuid"], is_chosen=False)
    return stream.getvalue()


def test_csv_cells_are_escaped_against_formulas() -> None:
    assert printed("csv", ROWS).splitlines() == ["uuid,name,size,on,tags,gone", 'a,\'=1+1,-1,true,"{""a"":1}",']


@pytest.mark.parametrize("rows", [[], ROWS, ROWS * 3], ids=["none", "one", "three"])
def test_json_is_one_array(rows: list[dict[str, Any]]) -> None:
    assert orjson.loads(printed("json", rows)) == rows


def test_control_characters_of_names_are_removed() -> None:
    assert "\x1b[31m" not in printed("table", [{"name": "\x1b[31mred\nline"}])


def test_table_is_coloured_only_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    rows = [{"state": "FAILED"}]
    assert "\x1b[1;31mFAILED" in printed("table", rows, Terminal())
    assert printed("table", rows, Terminal(), no_color=True) == "STATE\nFAILED\n"
    assert printed("table", rows) == "STATE\nFAILED\n"


def test_table_shortens_uuids_of_other_objects_and_times() -> None:
    uuid = "aa110000-0000-0000-0000-000000000000"
    row = {"uuid": uuid, "audit_uuid": uuid, "created_at": "2026-11-23T14:25:03.117997+00:00"}
    assert printed("table", [row]).splitlines() == [
        "UUID                                  AUDIT     CREATED AT (UTC)",
        f"{uuid}  aa110000  2026-11-23 14:25:03",
    ]
