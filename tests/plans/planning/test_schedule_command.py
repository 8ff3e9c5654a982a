"""``manage.py schedule_plan``."""

import pytest
from django.core.management import CommandError, call_command

from plans.models import ActionPlan
from tests.builders import make_plan

pytestmark = pytest.mark.django_db
NIGHTS = ("--opens=22:00", "--closes=04:00")


def run(plan: ActionPlan, *arguments: str) -> ActionPlan:
    call_command("schedule_plan", str(plan.uuid), *arguments)
    return ActionPlan.objects.get(pk=plan.pk)


def test_plan_is_started_for_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    plan = run(make_plan(), "--start", "--zone=Europe/Berlin", "--at=2100-01-31T22:00")
    assert (plan.state, f"{plan.opens_at:%Y-%m-%d %H:%M}") == ("PENDING", "2100-01-31 21:00")
    assert capsys.readouterr().out == "The action plan is PENDING and may begin from 2100-01-31 21:00 UTC on.\n"


def test_window_is_set_and_removed() -> None:
    plan = run(make_plan(), *NIGHTS, "--weekdays=friday,Saturday", "--last-day=2100-01-31")
    assert plan.window == {
        "opens": "22:00",
        "closes": "04:00",
        "weekdays": ["friday", "saturday"],
        "first_day": None,
        "last_day": "2100-01-31",
    }
    assert (plan.state, bool(plan.opens_at and plan.closes_at)) == ("RECOMMENDED", True)
    plan = run(plan, "--no-window")
    assert (plan.window, plan.opens_at, plan.closes_at) == (None, None, None)


def test_start_time_is_removed() -> None:
    plan = run(make_plan(), "--at=2100-01-31T22:00")
    assert run(plan, "--at=none").opens_at is None


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["--at=soon"], "^--at: must be a time in ISO 8601"),
        (["--zone=Atlantis"], "^--zone: there is no time zone 'Atlantis'"),
        (["--opens=22:00"], "^--closes: missing. A window needs both"),
        ([*NIGHTS, "--no-window"], "^--no-window: leaves no window"),
        ([*NIGHTS, "--weekdays=caturday"], "^--weekdays: must be a list"),
        ([*NIGHTS, "--first-day=soon"], "^--first-day: must be a day"),
    ],
)
def test_invalid_argument_is_refused(arguments: list[str], rule: str) -> None:
    with pytest.raises(CommandError, match=rule):
        run(make_plan(), *arguments)


def test_started_plan_cannot_be_started_again() -> None:
    with pytest.raises(CommandError, match="is not RECOMMENDED"):
        run(make_plan(state="PENDING"), "--start")


def test_start_time_of_a_running_plan_cannot_be_changed() -> None:
    with pytest.raises(CommandError, match=r"^--at: cannot be changed any more"):
        run(make_plan({"a": []}, state="ONGOING"), "--at=2100-01-31T22:00")
