"""Refused operations and the forced deletion of a cluster with an operation that waits for its window."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from actions.models import Action
from actions.operations.signals import signal_action
from cluster.models import Cluster, Node, Server
from plans.applier.applier import Applier
from plans.models import ActionPlan
from plans.operations import base
from tests.api import Caller, fault
from tests.builders import make_cluster, make_flavor, make_node, make_profile
from tests.plans.inline import InlineExecutor

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, "1.12")


@pytest.fixture
def applier(settings: object) -> Applier:
    settings.POLL_INTERVAL = 0
    return Applier(InlineExecutor())


@pytest.fixture
def cluster() -> Cluster:
    make_flavor("small", vcpus=1, memory=1024, disk=1)
    make_node("large", vcpus=10, memory=10240, disk=10)
    make_profile("web")
    return make_cluster("web", size=1)


def advance(applier: Applier, times: int = 1) -> None:
    for _ in range(times):
        applier.next_poll = 0
        applier.advance()
        applier.collect(0)


@pytest.fixture
def stuck(api: Caller, applier: Applier, cluster: Cluster) -> ActionPlan:
    """Return the plan of a scale-out whose window closed before it created its nodes."""
    answer = api.post(f"/clusters/{cluster.uuid}/scale_out", {"count": 2})
    applier.advance()
    plans = ActionPlan.objects.filter(uuid=answer.json()["action_plan"])
    window = {"opens": "22:00", "closes": "04:00", "weekdays": None, "last_day": None}
    plans.update(
        opens_at=timezone.now() + timedelta(hours=1), closes_at=timezone.now() + timedelta(hours=2), window=window
    )
    advance(applier, 3)
    assert plans.get().state == "ONGOING"
    return plans.get()


def test_conflict_names_the_plan_and_the_opening_of_its_window(
    api: Caller, cluster: Cluster, stuck: ActionPlan
) -> None:
    answer = api.post(f"/clusters/{cluster.uuid}/check")
    origin = stuck.actions.get(derived_from=None)
    assert (answer.status_code, fault(answer)) == (
        409,
        f"The CLUSTER_CHECK action for target {cluster.uuid} conflicts with the following action(s): {origin.uuid}. "
        f"Wait for action plan {stuck.uuid} to end, or cancel it. "
        f"Nothing more of it begins before {stuck.opens_at:%Y-%m-%d %H:%M:%S} UTC.",
    )


def test_cancel_of_the_plan_frees_the_cluster_while_the_window_is_closed(
    api: Caller, applier: Applier, cluster: Cluster, stuck: ActionPlan
) -> None:
    api.post(f"/action_plans/{stuck.uuid}/signal", {"signal": "CANCEL"})
    advance(applier, 5)
    assert ActionPlan.objects.get(pk=stuck.pk).state == "CANCELLED"
    assert api.post(f"/clusters/{cluster.uuid}/check").status_code == 202


def test_forced_deletion_cancels_the_operation_and_deletes_the_cluster(
    api: Caller, applier: Applier, cluster: Cluster, stuck: ActionPlan
) -> None:
    answer = api.delete(f"/clusters/{cluster.uuid}?force=true")
    assert answer.status_code == 202, fault(answer)
    advance(applier, 20)
    assert ActionPlan.objects.get(pk=stuck.pk).state == "CANCELLED"
    assert ActionPlan.objects.get(uuid=answer.json()["action_plan"]).state == "SUCCEEDED"
    assert not Cluster.objects.present().exists()
    assert not Node.objects.present().exists()
    assert not Server.objects.present().exists()


def test_forced_deletion_cancels_operations_on_nodes(api: Caller, applier: Applier, cluster: Cluster) -> None:
    check = api.post(f"/nodes/{Node.objects.get().uuid}/check").json()["action"]
    assert api.delete(f"/clusters/{cluster.uuid}?force=true").status_code == 202
    assert Action.objects.get(uuid=check).state == "CANCELLED"
    advance(applier, 20)
    assert not Cluster.objects.present().exists()


def test_forced_deletion_proceeds_if_the_operation_ends_before_the_cancel(
    api: Caller, applier: Applier, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = api.post(f"/nodes/{Node.objects.get().uuid}/check").json()["action"]

    def end_and_signal(uuid: UUID, signal: Action.Signal, by: str) -> Action:
        Action.objects.filter(uuid=uuid).update(state="SUCCEEDED")
        return signal_action(uuid, signal, by)

    monkeypatch.setattr(base, "signal_action", end_and_signal)
    answer = api.delete(f"/clusters/{cluster.uuid}?force=true")
    assert answer.status_code == 202, fault(answer)
    assert Action.objects.get(uuid=check).state == "SUCCEEDED"


def test_forced_deletion_does_not_cancel_another_deletion(api: Caller, cluster: Cluster) -> None:
    first = api.delete(f"/clusters/{cluster.uuid}?force=true").json()["action"]
    second = api.delete(f"/clusters/{cluster.uuid}?force=true")
    assert (second.status_code, first in fault(second)) == (409, True)
    assert Action.objects.get(uuid=first).state == "PENDING"


@pytest.mark.parametrize("query", ["", "?force=false", "?force=true&plan_only=true"])
def test_unforced_or_planned_deletion_cancels_nothing(
    api: Caller, cluster: Cluster, stuck: ActionPlan, query: str
) -> None:
    api.delete(f"/clusters/{cluster.uuid}{query}")
    assert not Action.objects.filter(state__in=["CANCELLED", "CANCELLING"]).exists()


def test_forced_deletion_without_the_signal_permission_cancels_nothing(
    cluster: Cluster, stuck: ActionPlan, stranger: User
) -> None:
    for name in ("delete_cluster", "view_cluster", "start_actionplan"):
        stranger.user_permissions.add(Permission.objects.get(codename=name))
    answer = Caller(stranger, "1.12").delete(f"/clusters/{cluster.uuid}?force=true")
    assert (answer.status_code, "conflicts with" in fault(answer)) == (409, True)
    assert not Action.objects.filter(state__in=["CANCELLED", "CANCELLING"]).exists()


def test_console_offers_to_cancel_the_operations_in_progress(
    client: Client, cloud_admin: User, cluster: Cluster, stuck: ActionPlan
) -> None:
    client.force_login(cloud_admin)
    where = reverse("clusters:delete", args=[cluster.uuid])
    assert "Confirm: the operations in progress are cancelled" in client.get(where).content.decode()
    assert client.post(where, {"force": "on"}).status_code == 302
    assert stuck.actions.get(derived_from=None).state == "CANCELLING"
