"""The summary of a finished plan names the skipped and the failed actions."""

import re

import pytest

from actions.models import Action
from actions.operations.skipping import skip_action
from plans.models import ActionPlan
from plans.models.summaries import summarize
from tests.builders import action, make_plan

pytestmark = pytest.mark.django_db


def make_skipped(number: int, finding: str = "Instance 7 not found") -> ActionPlan:
    plan = make_plan({str(index): [] for index in range(number)})
    for one in plan.actions.all():
        one.skip_automatically(finding)
        one.save_state()
    return plan


def summary(plan: ActionPlan) -> str | None:
    return summarize(plan.actions.all(), plan.actions.count_states())


def test_plan_without_failures_and_skips_has_no_summary() -> None:
    assert summary(make_plan({"a": []})) is None


def skip(plan: ActionPlan, name: str, reason: str = "") -> Action:
    return skip_action(action(plan, name).uuid, "alice", reason)


def fail(plan: ActionPlan, name: str, reason: str) -> Action:
    failed = action(plan, name)
    failed.fail("pre_condition", reason)
    failed.save_state()
    return failed


def test_skip_is_summarized_with_the_user_and_the_reason() -> None:
    plan = make_plan({"a": [], "b": []})
    skipped = skip(plan, "a", "month-end closing")
    wanted = f"One or more actions were skipped. 1 of 2: {skipped.uuid} by alice (month-end closing)."
    assert summary(plan) == wanted


def test_skip_without_a_reason_is_summarized_with_the_user_only() -> None:
    plan = make_plan({"a": []})
    skipped = skip(plan, "a")
    assert summary(plan) == f"One or more actions were skipped. 1 of 1: {skipped.uuid} by alice."


def test_automatic_skip_is_summarized_with_its_reason() -> None:
    plan = make_skipped(1)
    found = plan.actions.get()
    assert summary(plan) == f"One or more actions were skipped. 1 of 1: {found.uuid} (Instance 7 not found)."


def test_failures_are_summarized_before_skips() -> None:
    plan = make_plan({"a": [], "b": [], "c": []})
    skipped, failed = skip(plan, "a", "closing"), fail(plan, "b", "no room on compute2")
    assert summary(plan) == (
        "One or more actions were skipped. "
        f"1 of 3 actions failed: {failed.uuid} (pre_condition: no room on compute2). "
        f"1 of 3 skipped: {skipped.uuid} by alice (closing)."
    )


def test_summary_of_many_failures_has_space_for_the_first_skip() -> None:
    plan = make_plan({str(number): [] for number in range(20)})
    skipped = skip(plan, "7", "closing")
    for number in range(7):
        fail(plan, str(number), "x" * 150)
    text = summary(plan) or ""
    assert text.startswith("One or more actions were skipped. 7 of 20 actions failed: ")
    assert text.endswith(f" 1 of 20 skipped: {skipped.uuid} by alice (closing).")
    assert len(text) <= 255


def test_long_reason_is_truncated_and_further_skips_are_counted() -> None:
    plan = make_plan({str(number): [] for number in range(3)})
    for number in range(3):
        skip(plan, str(number), "the books are being closed " * 8)
    assert re.search(r" by alice \(the books are .*…\) and 2 more\.$", summary(plan) or "")


def test_too_long_user_name_is_omitted_and_skips_are_counted() -> None:
    plan = make_plan({"a": []})
    skip_action(action(plan, "a").uuid, "a" * 200, "closing")
    assert summary(plan) == "One or more actions were skipped. 1 of 1."


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 50])
@pytest.mark.parametrize("length", [0, 10, 60, 150, 220])
def test_summary_names_or_counts_all_skips_in_at_most_255_characters(number: int, length: int) -> None:
    plan = make_skipped(number, "x" * length)
    text = summary(plan) or ""
    named = len(re.findall(r"[0-9a-f]{8}-", text))
    more = re.search(r" and (\d+) more\.$", text)
    assert len(text) <= 255
    assert named >= 1
    assert named + (int(more[1]) if more else 0) == number
