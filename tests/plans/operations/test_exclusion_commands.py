"""``manage.py add_exclusion``, ``list_exclusions``, ``try_exclusion``, ``disable_exclusion``, ``remove_exclusion``."""

import pytest
from django.core.management import CommandError, call_command

from actions.models.exclusions import Exclusion
from tests.actions.exclusions.builders import make_exclusion
from tests.builders import make_plan, make_server
from watcher_site.models import HistoryEntry

pytestmark = pytest.mark.django_db
HOURS = ("--opens=08:00", "--closes=18:00", "--weekdays=monday,Friday", "--zone=Europe/Berlin")


def test_add_exclusion_records_the_user_named_by_as(capsys: pytest.CaptureFixture[str]) -> None:
    server = make_server("db")
    named = ("--server=db", "--type=migrate", "--type=resize", "--expires=2999-01-01T00:00", "--reason=licence")
    call_command("add_exclusion", "never db", *named, *HOURS, "--as=rosa")
    rule = Exclusion.objects.get()
    assert capsys.readouterr().out.strip() == str(rule.uuid)
    assert (rule.owner, rule.action_types, rule.targets) == (
        "rosa",
        ["migrate", "resize"],
        {"servers": [str(server.uuid)]},
    )
    assert (rule.window["weekdays"], rule.zone) == (["monday", "friday"], "Europe/Berlin")
    assert HistoryEntry.objects.get().user == "rosa"


def test_add_exclusion_with_try_does_not_add_the_exclusion(capsys: pytest.CaptureFixture[str]) -> None:
    plan = make_plan({"a": [], "b": []})
    call_command("add_exclusion", "freeze", "--type=nop", f"--try={plan.uuid}")
    out = capsys.readouterr().out
    assert "nop a" in out
    assert out.endswith("Excluded: 2 of 2. The exclusion is in force now.\n")
    assert not Exclusion.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["--type=fly"], "^--type: there is no action type fly"),
        (["--compute-node=moon"], "^--compute-node: there is no compute node moon"),
        (["--opens=8"], "^--opens: must be a time such as 22:00"),
        (["--expires=2020-01-01T00:00"], "^--expires: must not be in the past"),
        (["--zone=Atlantis"], "^--zone: there is no time zone"),
        (["--try=4a0cd5e7-7d75-4a1c-8f2a-111111111111"], "There is no action plan 4a0cd5e7"),
    ],
)
def test_invalid_argument_is_refused(arguments: list[str], rule: str) -> None:
    with pytest.raises(CommandError, match=rule):
        call_command("add_exclusion", "x", *arguments)
    assert not Exclusion.objects.exists()


def test_list_shows_window_and_expiry_in_the_same_zone(capsys: pytest.CaptureFixture[str]) -> None:
    hours = {"opens": "08:00", "closes": "18:00"}
    make_exclusion("freeze", window=hours, zone="Europe/Berlin", expires_at="2999-01-01T00:00:00Z")
    call_command("list_exclusions")
    out = capsys.readouterr().out
    assert "every day (Europe/Berlin)  until 2999-01-01 01:00 (Europe/Berlin)  alice" in out


def test_exclusions_are_listed_tried_disabled_enabled_and_removed(capsys: pytest.CaptureFixture[str]) -> None:
    make_exclusion("freeze", reason="audit week", action_types=["nop"])
    call_command("list_exclusions")
    assert capsys.readouterr().out == "freeze  now  nop  at every hour  alice  audit week\n"
    call_command("try_exclusion", "freeze", str(make_plan({"a": []}).uuid))
    assert "Excluded: 1 of 1." in capsys.readouterr().out
    call_command("disable_exclusion", "freeze", "--as=rosa")
    assert (Exclusion.objects.get().enabled, HistoryEntry.objects.latest("pk").user) == (False, "rosa")
    call_command("list_exclusions")
    assert "Exclusion freeze is disabled.\nfreeze  disabled  nop" in capsys.readouterr().out
    call_command("enable_exclusion", "freeze")
    assert Exclusion.objects.get().enabled
    call_command("remove_exclusion", "FREEZE")
    assert not Exclusion.objects.present().exists()
    with pytest.raises(CommandError, match="Exclusion freeze could not be found"):
        call_command("remove_exclusion", "freeze")
