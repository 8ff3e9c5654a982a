"""The examples of docs/commands.md, run on the demonstration."""

import re
import shlex
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command, get_commands, load_command_class

from plans.applier import foreground
from plans.models import ActionPlan
from tests.command_runs import Run, run
from tests.plans.inline import run_waiting
from watcher_site.terminal.groups import CommandGroup

__all__ = ["run"]
PAGE = (Path(__file__).parents[3] / "docs" / "commands.md").read_text()
EXAMPLES = re.findall(r"^manage\.py (.*)$", PAGE, re.MULTILINE)


def test_documented_examples_succeed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreground.time, "sleep", lambda _: run_waiting())
    call_command("load_demonstration", stdout=StringIO())
    plan = ActionPlan.objects.get()
    action = plan.actions.filter(action_type="migrate").earliest("pk")
    for example in EXAMPLES:
        line = example.replace("PLAN", str(plan.uuid)[:13]).replace("ACTION", str(action.uuid)[:13])
        ended = run(*shlex.split(line))
        assert (ended.status, ended.errors) == (0, ""), line
    plan.refresh_from_db()
    action.refresh_from_db()
    assert (len(EXAMPLES), plan.state, action.state) == (9, "SUCCEEDED", "SKIPPED")


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
