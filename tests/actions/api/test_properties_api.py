"""Properties of actions since 1.12 (docs/compatibility.md, "Action properties")."""

import pytest
from django.contrib.auth.models import User

from actions.models import Action
from plans.models import ActionPlan
from tests.api import Caller
from tests.builders import action, make_plan
from tests.plans.inline import run_waiting
from watcher_site.models import Service

pytestmark = pytest.mark.django_db

SERVER = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
SHORT = {"name", "target", "status"}
LONG = {
    *("action", "cause", "owner", "interval", "timeout", "start_time", "end_time", "due_time"),
    *("status_reason", "inputs", "depends_on", "depended_by"),
}


@pytest.fixture
def newest(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, "1.12")


def shown(caller: Caller, one: Action) -> dict[str, object]:
    found: dict[str, object] = caller.get(f"/actions/{one.uuid}").json()
    return found


def test_new_properties_are_absent_before_1_12(cloud_admin: User) -> None:
    one = action(make_plan({"a": []}), "a")
    assert shown(Caller(cloud_admin, "1.11"), one).keys() & (SHORT | LONG) == set()


def test_short_list_shows_name_target_and_status(newest: Caller) -> None:
    make_plan({"a": []})
    (row,) = newest.get("/actions").json()["actions"]
    assert row.keys() & (SHORT | LONG) == SHORT


def test_one_action_shows_all_properties(newest: Caller) -> None:
    assert shown(newest, action(make_plan({"a": []}), "a")).keys() >= SHORT | LONG


def test_properties_with_two_names_have_one_value(newest: Caller) -> None:
    plan = make_plan({"a": [], "b": ["a"]})
    read = shown(newest, action(plan, "b"))
    assert read["inputs"] == read["input_parameters"] == {"message": "b"}
    assert read["depends_on"] == read["parents"] == [str(action(plan, "a").uuid)]
    assert read["action"] == read["action_type"] == "nop"
    assert read["status_reason"] == read["status_message"]


def test_cause_of_a_derived_action_is_derived_action(newest: Caller) -> None:
    plan = make_plan({"a": [], "x": []})
    Action.objects.filter(pk=action(plan, "x").pk).update(derived_from=action(plan, "a"))
    causes = [row["cause"] for row in newest.get("/actions/detail").json()["actions"]]
    assert causes == ["RPC Request", "Derived Action"]


def test_depended_by_lists_the_children(newest: Caller) -> None:
    plan = make_plan({"a": [], "b": ["a"], "c": ["a"]})
    expected = [str(action(plan, name).uuid) for name in "bc"]
    assert shown(newest, action(plan, "a"))["depended_by"] == expected
    assert shown(newest, action(plan, "c"))["depended_by"] == []


def test_cause_of_an_audit_action_is_a_request_and_its_interval_zero(newest: Caller) -> None:
    read = shown(newest, action(make_plan({"a": []}), "a"))
    assert (read["cause"], read["interval"]) == ("RPC Request", 0)


def test_generated_name_consists_of_the_type_and_a_uuid_prefix(newest: Caller) -> None:
    one = action(make_plan({"a": []}), "a")
    assert shown(newest, one)["name"] == f"nop_{str(one.uuid)[:8]}"


def test_given_name_is_kept(newest: Caller) -> None:
    one = Action.objects.create(action_plan=make_plan(), action_type="nop", name="the first")
    assert shown(newest, one)["name"] == "the first"


def test_generated_name_is_cut_to_the_column() -> None:
    one = Action.objects.create(action_plan=make_plan(), action_type="x" * 255)
    assert (len(one.name), one.name[-9:]) == (255, f"_{str(one.uuid)[:8]}")


@pytest.mark.parametrize(
    ("action_type", "parameters", "target"),
    [
        ("stop", {"resource_id": SERVER}, SERVER),
        ("nop", {"message": "x"}, None),
        ("stop", {"resource_id": 12}, None),
        ("stop", {"resource_id": "x" * 256}, None),
        ("unheard_of", {"resource_id": SERVER}, None),
    ],
)
def test_target_is_the_parameter_that_the_action_type_declares(
    newest: Caller, action_type: str, parameters: dict[str, object], target: str | None
) -> None:
    one = Action.objects.create(action_plan=make_plan(), action_type=action_type, input_parameters=parameters)
    assert shown(newest, one)["target"] == target


def test_action_that_failed_before_execute_has_no_times(newest: Caller) -> None:
    one = action(make_plan({"a": []}, state="PENDING"), "a")
    Action.objects.update(input_parameters={"message": "a", "fail_pre_condition": True})
    run_waiting()
    read = shown(newest, one)
    assert (read["status"], read["start_time"], read["end_time"]) == ("FAILED", None, None)


def test_executed_action_has_start_and_end_times_and_no_owner(newest: Caller) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    run_waiting()
    read = shown(newest, action(plan, "a"))
    assert str(read["start_time"]) <= str(read["end_time"])
    assert read["owner"] is None


def test_running_action_is_owned_by_its_applier(newest: Caller) -> None:
    applier = Service.register(Service.APPLIER, "here")
    one = action(make_plan({"a": []}, state="ONGOING", applier=applier), "a")
    one.begin(applier.pk)
    one.save_state()
    read = shown(newest, one)
    assert (read["owner"], read["end_time"]) == (applier.pk, None)
    assert read["start_time"] is not None


def test_service_that_owns_actions_is_not_idle() -> None:
    applier = Service.register(Service.APPLIER, "here")
    one = action(make_plan({"a": []}), "a")
    one.begin(applier.pk)
    one.save_state()
    assert not Service.objects.filter(pk=applier.pk).idle().exists()
    one.succeed()
    one.save_state()
    assert Service.objects.filter(pk=applier.pk).idle().exists()


def test_actions_created_in_bulk_get_generated_names() -> None:
    make_plan({str(number): [] for number in range(3)})
    assert ActionPlan.objects.get().actions.filter(name__startswith="nop_").count() == 3


@pytest.mark.parametrize(("state", "is_shown"), [("PENDING", True), ("ONGOING", False), ("SUCCEEDED", False)])
def test_due_time_is_shown_only_while_the_action_is_pending(newest: Caller, state: str, is_shown: bool) -> None:
    one = action(make_plan({"a": []}, state="ONGOING"), "a")
    Action.objects.filter(pk=one.pk).update(state=state, due_time="2030-01-31T22:00:00Z")
    assert shown(newest, one)["due_time"] == ("2030-01-31T22:00:00+00:00" if is_shown else None)


def test_only_status_reason_reports_the_success_of_an_action(cloud_admin: User) -> None:
    plan = make_plan({"a": []})
    plan.actions.update(state="SUCCEEDED")
    shown = Caller(cloud_admin, "1.12").get(f"/actions/{plan.actions.get().uuid}").json()
    assert (shown["status_message"], shown["status_reason"]) == (None, "Action completed successfully.")
