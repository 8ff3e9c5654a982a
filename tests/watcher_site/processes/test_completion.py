"""The shell completion of a command line, in separate processes because argcomplete closes files."""

from pathlib import Path

import pytest

from plans.management.commands import clusters, plans
from tests.builders import make_cluster, make_plan
from tests.watcher_site.site_process import run
from watcher_site.terminal.groups import ShowObject


def complete(folder: Path, line: str, *arguments: str, **variables: str) -> list[str]:
    """Return the suggestions for a line."""
    found = folder / "completions"
    ended = run(
        *(arguments or ["manage.py"]),
        _ARGCOMPLETE="1",
        _ARGCOMPLETE_IFS="\n",
        _ARGCOMPLETE_STDOUT_FILENAME=str(found),
        COMP_LINE=line,
        COMP_POINT=str(len(line)),
        **variables,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    return found.read_text().split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("manage.py plan", ["plans"]),
        ("manage.py plans su", ["suspend", "suspend-restored"]),
        ("manage.py plans list --st", ["--state", "--strategy"]),
        ("manage.py plans list --state SU", ["SUCCEEDED", "SUPERSEDED"]),
        ("manage.py servers list --columns unh", ["unhealthy_reason"]),
        ("manage.py create_user bob --group r", ["reader"]),
    ],
)
def test_commands_options_and_values_are_completed(tmp_path: Path, line: str, expected: list[str]) -> None:
    assert complete(tmp_path, line) == expected


def test_console_script_is_completed(tmp_path: Path) -> None:
    arguments = ("-m", "watcher_site.processes.command_line")
    assert complete(tmp_path, "watcher-site plans sta", *arguments) == ["start"]


def test_no_object_is_suggested_without_a_database(tmp_path: Path) -> None:
    database = "postgres://nobody@127.0.0.1:1/watcher"
    assert complete(tmp_path, "manage.py plans show a", DATABASE_URL=database) == []


@pytest.mark.django_db
def test_objects_are_completed_by_uuid() -> None:
    for beginning in ("aa11", "bb11"):
        make_plan(uuid=beginning + "0" * 28)
    assert ShowObject(plans.Command()).complete("aa") == ["aa110000-0000-0000-0000-000000000000"]
    assert len(ShowObject(plans.Command()).complete("")) == 2


@pytest.mark.django_db
def test_objects_are_completed_by_name() -> None:
    make_cluster("web")
    assert ShowObject(clusters.Command()).complete("we") == ["web"]
