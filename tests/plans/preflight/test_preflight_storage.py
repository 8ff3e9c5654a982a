"""Stored results of preflights, and their invalidation."""

from collections.abc import Callable
from datetime import timedelta
from unittest.mock import patch

import pytest
from django.utils import timezone

from cluster.models import Server
from plans.models import ActionPlan, PreflightResult
from plans.preflight_storage import MAX_AGE, find_result, read_prospects, store_result
from tests.actions.exclusions.builders import make_exclusion
from tests.builders import action, make_node, make_plan, make_server
from watcher_site.refusals import Conflict

pytestmark = pytest.mark.django_db


def stored(plan: ActionPlan, *, details: bool = True) -> PreflightResult:
    result = find_result(plan, details=details)
    store_result(result)
    return result


def is_kept(plan: ActionPlan) -> bool:
    """Return whether the stored result of a plan is still valid."""
    with patch("plans.preflight_storage.preflight") as computation:
        computation.return_value.configure_mock(prospects=[], ended={}, is_mirrored=False, read_at=None)
        find_result(ActionPlan.objects.get(pk=plan.pk), details=True)
    return not computation.called


def test_stored_result_is_returned_while_nothing_changes() -> None:
    plan = make_plan({"a": []})
    stored(plan)
    assert is_kept(plan)


def add_server() -> None:
    make_server("new", make_node("node"))


def rename_server() -> None:
    server = Server.objects.get(name="server")
    server.name = "another"
    server.save_changes(["name"])


def delete_server() -> None:
    Server.objects.filter(name="server").soft_delete()


def add_exclusion() -> None:
    make_exclusion(action_types=["nop"])


@pytest.mark.parametrize(
    "change", [add_server, rename_server, delete_server, add_exclusion], ids=lambda change: change.__name__
)
def test_change_of_the_cloud_or_the_exclusions_invalidates_the_result(change: Callable[[], None]) -> None:
    make_server("server", make_node("first"))
    plan = make_plan({"a": []})
    stored(plan)
    change()
    assert not is_kept(plan)


def test_skip_invalidates_the_result() -> None:
    plan = make_plan({"a": [], "b": []})
    stored(plan)
    skipped = action(plan, "a")
    skipped.skip("admin")
    skipped.save_state()
    assert not is_kept(plan)


def test_change_of_on_failure_invalidates_the_result() -> None:
    plan = make_plan({"a": []})
    stored(plan)
    ActionPlan.objects.filter(pk=plan.pk).update(on_failure=ActionPlan.OnFailure.STOP)
    assert not is_kept(plan)


def test_old_result_is_computed_again() -> None:
    plan = make_plan({"a": []})
    stored(plan)
    plan.preflight_results.update(computed_at=timezone.now() - MAX_AGE)
    assert not is_kept(plan)


def test_readers_without_event_details_have_a_separate_result() -> None:
    plan = make_plan({"a": []})
    stored(plan, details=False)
    assert not is_kept(plan)


def test_new_result_replaces_the_earlier_one() -> None:
    plan = make_plan({"a": []})
    stored(plan)
    plan.preflight_results.update(version="another")
    stored(plan)
    assert plan.preflight_results.get().version != "another"


def test_concurrent_computations_store_one_result() -> None:
    plan = make_plan({"a": []})
    first, second = find_result(plan, details=True), find_result(plan, details=True)
    store_result(first)
    store_result(second)
    assert plan.preflight_results.get().computed_at == second.computed_at


def test_new_result_deletes_an_expired_result_of_another_plan() -> None:
    other = make_plan({"a": []})
    stored(other)
    other.preflight_results.update(computed_at=timezone.now() - MAX_AGE - timedelta(minutes=1))
    stored(make_plan({"a": []}))
    assert not other.preflight_results.exists()


def test_stored_result_of_an_ended_plan_is_refused() -> None:
    plan = make_plan({"a": []})
    stored(plan)
    ActionPlan.objects.filter(pk=plan.pk).update(state="CANCELLED")
    with pytest.raises(Conflict, match="nothing of it begins any more"):
        find_result(ActionPlan.objects.get(pk=plan.pk), details=True)


def test_stored_result_has_the_outcomes_and_messages_of_the_computation() -> None:
    plan = make_plan({"a": [], "b": []})
    plan.actions.filter(input_parameters__message="b").update(input_parameters={"message": "b", "fail_execute": True})
    computed = stored(plan)
    result = find_result(plan, details=True)
    assert result.pk is not None
    assert (
        result.counts == computed.counts == {"SUCCEEDED": 1, "SKIPPED": 0, "FAILED": 1, "CANCELLED": 0, "UNKNOWN": 0}
    )
    [prospect] = read_prospects(result.select())
    assert (prospect.action, prospect.outcome) == (action(plan, "b"), "FAILED")
    assert prospect.predicted_message.startswith("would fail in execute")
