"""Commands report invalid input in one line with status 2."""

import logging

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, CommandParser, call_command
from django.db import OperationalError

from tests.builders import make_plan
from watcher_site.accounts.tokens import make_token, valid_tokens
from watcher_site.models import HistoryEntry
from watcher_site.processes.commands import Command
from watcher_site.refusals import Conflict

pytestmark = pytest.mark.django_db


class Lend(Command):
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("hours", type=int)

    def handle(self, *args: object, **options: object) -> None:
        logging.getLogger("lending").info("lent")
        if options["hours"] == 0:
            raise OperationalError("no such\n\ttable")
        raise Conflict("It is lent\nalready.")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        Lend().run_from_argv(["manage.py", "lend", "--no-color", *arguments])
    return int(str(ended.value.code)), capsys.readouterr().err


def test_refusal_is_one_line_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "3") == (2, "CommandError: It is lent already.\n")


@pytest.mark.parametrize("arguments", [["three"], [], ["3", "--unknown"]])
def test_invalid_argument_is_one_line_with_status_2(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    status, printed = run(capsys, *arguments)
    assert status == 2
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (["actions", "skip", "ffff\n"], "action ffff."),
        (["signal_action", " ffff ", "CANCEL"], "action ffff."),
        (["plans", "show", "ffff\n"], "action plan ffff."),
        (["preflight_plan", " ffff "], "action plan ffff."),
        (["plans", "list", "--audit", "ffff "], "audit ffff."),
        (["users", "change", " alice\n", "--enable"], "user alice."),
    ],
)
def test_white_space_around_an_identifier_is_ignored(command: list[str], named: str) -> None:
    with pytest.raises(CommandError, match=f"there is no {named}$|There is no {named}$"):
        call_command(*command)


@pytest.mark.parametrize("blanks", ["{} ", " {}", "{}\n"])
def test_token_and_its_user_are_found_with_surrounding_white_space(blanks: str, cloud_admin: User) -> None:
    token, _ = make_token(cloud_admin)
    call_command("tokens", "revoke", blanks.format(token.token_key), "--yes")
    make_token(cloud_admin)
    call_command("revoke_token", user=blanks.format(cloud_admin.username))
    assert not valid_tokens().exists()


def test_database_error_is_one_line_with_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "0") == (1, "CommandError: database: no such. table.\n")


@pytest.mark.parametrize(("verbosity", "messages"), [("1", []), ("2", ["lent"])])
def test_command_logs_events_with_verbosity_2_only(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, verbosity: str, messages: list[str]
) -> None:
    logging.getLogger().setLevel(logging.INFO)
    run(capsys, "3", "--verbosity", verbosity)
    assert caplog.messages == messages


def test_traceback_is_shown_on_request() -> None:
    with pytest.raises(CommandError, match="hours"):
        Lend().run_from_argv(["manage.py", "lend", "three", "--traceback"])


def test_call_command_raises_the_refusal() -> None:
    with pytest.raises(CommandError, match="lent already"):
        call_command(Lend(), 3)


@pytest.mark.parametrize("name", ["", " ", "alice\nbob", "x" * 256])
def test_name_that_history_cannot_show_is_refused(name: str) -> None:
    with pytest.raises(CommandError, match="argument --as: must be a name of 1 to 255 characters"):
        call_command("signal_action", "ffff", "CANCEL", "--as", name)


def test_history_records_a_name_without_an_account() -> None:
    plan = make_plan({"a": []}, state="PENDING")
    call_command("plans", "suspend", str(plan.uuid), "--as", "Nightly job")
    assert HistoryEntry.objects.get(object_uuid=plan.uuid).user == "Nightly job"
