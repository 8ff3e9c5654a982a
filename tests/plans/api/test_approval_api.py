"""The approval of action plans in the API, from microversion 1.17 on."""

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from plans.models import ActionPlan
from tests.api import Caller, fault
from tests.builders import make_plan
from tests.conftest import person
from watcher_site.models import HistoryEntry

pytestmark = pytest.mark.django_db
START = [{"op": "replace", "path": "/state", "value": "PENDING"}]


@pytest.fixture(autouse=True)
def _approval_is_required(settings: Settings) -> None:
    settings.PLAN_APPROVAL = True


@pytest.fixture
def alice(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, "1.17")


@pytest.fixture
def bob(db: None) -> Caller:
    return Caller(person("bob", "cloud-admin"), "1.17")


def test_approval_is_in_the_response_and_the_plan(bob: Caller) -> None:
    plan = make_plan()
    answer = bob.post(f"/action_plans/{plan.uuid}/approve")
    assert (answer.status_code, answer.json()["approved_by"]) == (200, "bob")
    assert bob.get(f"/action_plans/{plan.uuid}").json()["approved_at"] == answer.json()["approved_at"] is not None


def test_withdrawal_resets_the_fields(bob: Caller) -> None:
    plan = make_plan()
    bob.post(f"/action_plans/{plan.uuid}/approve")
    answer = bob.post(f"/action_plans/{plan.uuid}/withdraw_approval")
    assert (answer.status_code, answer.json()["approved_by"], answer.json()["approved_at"]) == (200, None, None)


def test_patch_that_starts_a_plan_without_an_approval_is_a_conflict(alice: Caller) -> None:
    plan = make_plan()
    answer = alice.patch(f"/action_plans/{plan.uuid}", START)
    assert (answer.status_code, fault(answer)) == (
        409,
        f"Action plan {plan.uuid} requires the approval of another user.",
    )


@pytest.mark.parametrize("body", [None, {"start_at": "2100-01-01T00:00"}])
def test_post_that_starts_a_plan_without_an_approval_is_a_conflict(alice: Caller, body: object) -> None:
    plan = make_plan()
    answer = alice.post(f"/action_plans/{plan.uuid}/start", body)
    assert (answer.status_code, "requires the approval of another user" in fault(answer)) == (409, True)
    assert ActionPlan.objects.get().state == "RECOMMENDED"


@pytest.mark.parametrize("version", ["1.0", "1.7", "1.12"])
def test_start_in_earlier_microversions_requires_the_approval(cloud_admin: User, version: str) -> None:
    plan = make_plan()
    assert Caller(cloud_admin, version).patch(f"/action_plans/{plan.uuid}", START).status_code == 409


def test_plan_is_started_by_another_user_than_the_one_who_approved_it(alice: Caller, bob: Caller) -> None:
    plan = make_plan()
    bob.post(f"/action_plans/{plan.uuid}/approve")
    assert bob.patch(f"/action_plans/{plan.uuid}", START).status_code == 409
    assert alice.patch(f"/action_plans/{plan.uuid}", START).json()["state"] == "PENDING"


def test_repeated_approval_is_a_conflict(alice: Caller, bob: Caller) -> None:
    plan = make_plan()
    bob.post(f"/action_plans/{plan.uuid}/approve")
    answer = alice.post(f"/action_plans/{plan.uuid}/approve")
    assert (answer.status_code, fault(answer)) == (409, f"Action plan {plan.uuid} is already approved by bob.")


def test_approval_on_a_site_without_approvals_is_a_conflict(settings: Settings, bob: Caller) -> None:
    settings.PLAN_APPROVAL = False
    answer = bob.post(f"/action_plans/{make_plan().uuid}/approve")
    assert (answer.status_code, "WATCHER_PLAN_APPROVAL" in fault(answer)) == (409, True)


@pytest.mark.parametrize("operation", ["approve", "withdraw_approval"])
def test_readers_cannot_approve_a_plan_or_withdraw_the_approval(reader: User, operation: str) -> None:
    answer = Caller(reader, "1.17").post(f"/action_plans/{make_plan().uuid}/{operation}")
    assert (answer.status_code, fault(answer)) == (
        403,
        f"Policy doesn't allow action_plan:{operation} to be performed.",
    )


@pytest.mark.parametrize("operation", ["approve", "withdraw_approval"])
def test_operations_are_not_acceptable_before_microversion_1_17(cloud_admin: User, operation: str) -> None:
    answer = Caller(cloud_admin, "1.16").post(f"/action_plans/{make_plan().uuid}/{operation}")
    assert answer.status_code == 406


def test_fields_are_unknown_before_microversion_1_17(cloud_admin: User, alice: Caller) -> None:
    plan = make_plan(approved_by="bob")
    fields = {"approved_by", "approved_at"}
    assert fields <= alice.get(f"/action_plans/{plan.uuid}").json().keys()
    assert not fields & Caller(cloud_admin, "1.16").get(f"/action_plans/{plan.uuid}").json().keys()


def test_refused_start_is_recorded_in_history(alice: Caller) -> None:
    plan = make_plan()
    alice.patch(f"/action_plans/{plan.uuid}", START)
    entry = HistoryEntry.objects.get(object_uuid=plan.uuid)
    assert (entry.user, entry.deed, entry.outcome) == ("alice", "action_plan.start", "refused")
