"""The examples of docs/commands.md, run on the demonstration."""

import re
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command, get_commands, load_command_class

from plans.applier import foreground
from plans.models import ActionPlan
from tests.command_runs import Run, run
from tests.documentation.blocks import read_text
from tests.documentation.test_documented_commands import shell_commands
from tests.plans.inline import run_waiting
from watcher_site.terminal.groups import CommandGroup

__all__ = ["run"]
PAGE = (Path(__file__).parents[3] / "docs" / "commands.md").read_text()


@pytest.mark.parametrize(
    ("page", "heading"),
    [
        pytest.param("README.md", "### With `manage.py`"),
        pytest.param("docs/commands.md", "## Lists and operations"),
    ],
)
def test_documented_examples_succeed(run: Run, monkeypatch: pytest.MonkeyPatch, page: str, heading: str) -> None:
    monkeypatch.setattr(foreground.time, "sleep", lambda _: run_waiting())
    call_command("load_demonstration", stdout=StringIO())
    plan = ActionPlan.objects.get()
    action = plan.actions.filter(action_type="migrate").earliest("pk")
    names = {"PLAN": str(plan.uuid)[:13], "ACTION": str(action.uuid)[:13]}
    for program, *example in shell_commands(read_text(page, heading)):
        arguments = example[1:] if program.endswith("python") else example
        ended = run(*(names.get(word, word) for word in arguments))
        assert (ended.status, ended.errors) == (0, ""), example
    plan.refresh_from_db()
    action.refresh_from_db()
    assert (plan.state, action.state) == ("SUCCEEDED", "SKIPPED")


def test_page_lists_all_subcommands() -> None:
    listed = {
        name: re.findall(r"`([\w-]+)`", subcommands)
        for names, subcommands in re.findall(r"^\| (`.*`) \| (`.*`) \|$", PAGE, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", names)
    }
    groups = {
        name: [kind.name for kind in command.subcommands]
        for name, app in get_commands().items()
        if isinstance(command := load_command_class(app, name), CommandGroup)
    }
    assert listed == groups
