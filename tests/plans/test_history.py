"""History entries of operations on plans and actions, in the transaction of the change."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from plans.models import ActionPlan
from plans.operations.base import RequestOptions
from plans.operations.clusters import scale_out
from plans.operations.stacks import update_stack
from tests.actions.types.clusters.builders import make_cluster
from tests.api import Caller
from tests.builders import make_flavor, make_plan, make_stack
from watcher_site.models import HistoryEntry
from watcher_site.request_context import CallingContext, on_behalf_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def plan() -> ActionPlan:
    return make_plan({"a": [], "b": []})


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, "latest")


def recorded_events() -> list[tuple[str, str]]:
    return list(HistoryEntry.objects.order_by("pk").values_list("user", "deed"))


def test_skips_are_recorded_for_each_action_and_its_plan_with_user_and_reason(api: Caller, plan: ActionPlan) -> None:
    uuids = [str(action.uuid) for action in plan.actions.order_by("pk")]
    response = api.post(f"/action_plans/{plan.uuid}/skip", {"actions": uuids, "reason": "Not before Sunday"})
    found = HistoryEntry.objects.about(plan.uuid).order_by("pk")
    assert [str(entry.object_uuid) for entry in found] == uuids
    assert {(entry.user, entry.deed, entry.message) for entry in found} == {
        ("alice", "action.skip", "Not before Sunday")
    }
    assert {entry.request_id for entry in found} == {response["x-openstack-request-id"]}


def test_schedule_start_and_cancel_of_a_plan_are_recorded_with_the_user(api: Caller, plan: ActionPlan) -> None:
    api.post(f"/action_plans/{plan.uuid}/start", {"start_at": "2100-01-01T00:00"})
    api.post(f"/action_plans/{plan.uuid}/signal", {"signal": "CANCEL"})
    assert recorded_events() == [
        ("alice", "action_plan.schedule"),
        ("alice", "action_plan.start"),
        ("alice", "action_plan.cancel"),
    ]


def test_start_that_lost_a_race_is_not_recorded(plan: ActionPlan) -> None:
    slow = ActionPlan.objects.get(pk=plan.pk)
    plan.launch()
    with on_behalf_of(lambda: CallingContext(user="rosa")), pytest.raises(Exception, match="no longer"):
        slow.launch()
    assert recorded_events() == []


def test_console_operations_are_recorded_like_api_operations(cloud_admin: User, plan: ActionPlan) -> None:
    client = Client()
    client.force_login(cloud_admin)
    action = plan.actions.first()
    client.post(reverse("plans:skip", args=[plan.uuid]), {"only": str(action.uuid), "confirmed": "1", "reason": ""})
    client.post(reverse("plans:restore", args=[plan.uuid]), {"only": str(action.uuid)})
    assert recorded_events() == [("alice", "action.skip"), ("alice", "action.restore")]


def test_cluster_operation_is_recorded_with_its_plan_and_inputs() -> None:
    cluster = make_cluster(name="web")
    with on_behalf_of(lambda: CallingContext(user="rosa")):
        operation = scale_out(cluster, count=2, options=RequestOptions(plan_only=True))
    entry = HistoryEntry.objects.get()
    assert (entry.deed, entry.object_name, entry.object_uuid) == ("cluster.scale_out", "web", cluster.uuid)
    assert entry.details == {"action_plan": str(operation.action_plan), "plan_only": True, "count": 2}


def test_stack_update_is_recorded_without_its_template() -> None:
    make_flavor("small")
    template = {"resources": {"web": {"type": "server", "properties": {"flavor": "small"}}}}
    with on_behalf_of(lambda: CallingContext(user="rosa")):
        update_stack(make_stack(), template, options=RequestOptions(plan_only=True))
    assert HistoryEntry.objects.get(deed="stack.update").details.keys() == {"action_plan", "plan_only"}
