"""History records refused requests and failed logins, in limited numbers."""

from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from knox.models import AuthToken

from plans.models import ActionPlan
from tests.api import Caller
from tests.builders import make_plan
from tests.plans.applier.test_commits import counted
from watcher_site.history import logins, recording
from watcher_site.history.logins import AND_FURTHER
from watcher_site.models import HistoryEntry

pytestmark = pytest.mark.django_db


@pytest.fixture
def plan() -> ActionPlan:
    return make_plan({"a": []}, state=ActionPlan.State.ONGOING)


def recorded() -> list[tuple[str, str, str]]:
    return list(HistoryEntry.objects.order_by("pk").values_list("user", "deed", "outcome"))


def test_refusal_by_state_is_recorded_with_the_reason(cloud_admin: User, plan: ActionPlan) -> None:
    api = Caller(cloud_admin, "latest")
    skip = [{"op": "replace", "path": "/state", "value": "SKIPPED"}]
    assert api.patch(f"/actions/{plan.actions.get().uuid}", skip).status_code == 409
    assert api.post(f"/action_plans/{plan.uuid}/start").status_code == 400
    assert api.delete(f"/action_plans/{plan.uuid}").status_code == 400
    assert recorded() == [
        ("alice", "action.skip", "refused"),
        ("alice", "action_plan.start", "refused"),
        ("alice", "action_plan.delete", "refused"),
    ]
    entry = HistoryEntry.objects.order_by("pk").first()
    assert entry.object_uuid == plan.actions.get().uuid
    assert "ONGOING" in entry.message


def test_missing_permission_is_recorded_for_the_api_and_the_console(reader: User, plan: ActionPlan) -> None:
    assert Caller(reader, "latest").post(f"/action_plans/{plan.uuid}/signal", {"signal": "CANCEL"}).status_code == 403
    client = Client()
    client.force_login(reader)
    assert client.post(reverse("plans:cancel", args=[plan.uuid])).status_code == 403
    assert recorded() == [("rob", "action_plan.signal", "refused"), ("rob", "action_plan.cancel", "refused")]
    assert set(HistoryEntry.objects.values_list("object_uuid", flat=True)) == {plan.uuid}


def test_invalid_input_and_missing_objects_are_not_recorded(cloud_admin: User) -> None:
    api = Caller(cloud_admin, "latest")
    assert api.post("/profiles", {"name": ""}).status_code == 400
    assert api.get(f"/action_plans/{uuid4()}").status_code == 404
    assert recorded() == []


def test_refused_read_is_recorded_with_one_insert(stranger: User, plan: ActionPlan) -> None:
    api, path = Caller(stranger, "latest"), f"/action_plans/{plan.uuid}"
    with counted() as statements:
        assert api.get(path).status_code == 403
    assert sum("historyentry" in sql for sql in statements) == 1
    client = Client()
    client.force_login(stranger)
    for page in (
        reverse("plans:detail", args=[plan.uuid]),
        reverse("history:list"),
        reverse("history:export", args=["csv"]),
    ):
        assert client.get(page).status_code == 403
    view = ("sam", "action_plan.view", "refused")
    assert recorded() == [view, view, ("sam", "history.view", "refused")]
    assert HistoryEntry.objects.filter(object_uuid=plan.uuid).count() == 2


def test_refusal_for_actions_of_a_plan_is_recorded_within_the_plan(cloud_admin: User, plan: ActionPlan) -> None:
    actions = [str(plan.actions.get().uuid)]
    for verb in ("skip", "restore"):
        answer = Caller(cloud_admin, "latest").post(f"/action_plans/{plan.uuid}/{verb}", {"actions": actions})
        assert answer.status_code == 409
        recording.refusal_limit.forget()
    client = Client()
    client.force_login(cloud_admin)
    client.post(reverse("plans:skip", args=[plan.uuid]), {"only": actions, "confirmed": "1", "reason": ""})
    client.post(reverse("plans:restore", args=[plan.uuid]), {"only": actions})
    assert [event for _, event, _ in recorded()] == ["action.skip", "action.restore"] * 2
    assert set(HistoryEntry.objects.values_list("within", "object_uuid")) == {(plan.uuid, None)}


def test_outdated_button_is_recorded_as_a_refusal(cloud_admin: User, plan: ActionPlan) -> None:
    client = Client()
    client.force_login(cloud_admin)
    client.post(reverse("plans:start", args=[plan.uuid]))
    assert recorded() == [("alice", "action_plan.start", "refused")]


def test_refused_command_is_recorded(plan: ActionPlan) -> None:
    ActionPlan.objects.filter(pk=plan.pk).update(state="SUCCEEDED")
    with pytest.raises(CommandError):
        call_command("continue_plan", str(plan.uuid))
    entry = HistoryEntry.objects.get()
    assert (entry.deed, entry.outcome) == ("command.continue_plan", "refused")


def test_same_refusal_is_recorded_once_a_minute(cloud_admin: User, plan: ActionPlan) -> None:
    for _ in range(3):
        Caller(cloud_admin, "latest").post(f"/action_plans/{plan.uuid}/start")
    assert len(recorded()) == 1


def test_login_logout_and_failed_login_are_recorded_with_the_address(cloud_admin: User) -> None:
    client = Client(REMOTE_ADDR="192.0.2.7")
    for password in ("wrong", "alice-password"):
        client.post(reverse("login"), {"username": "alice", "password": password})
    client.post(reverse("logout"))
    assert recorded() == [
        ("", "user.login", "refused"),
        ("alice", "user.login", "success"),
        ("alice", "user.logout", "success"),
    ]
    assert {entry.details["address"] for entry in HistoryEntry.objects.all()} == {"192.0.2.7"}
    assert set(HistoryEntry.objects.values_list("object_name", flat=True)) == {"alice"}


def test_unknown_user_name_is_not_stored(client: Client, cloud_admin: User) -> None:
    client.get("/v1/audits", headers={"Authorization": "Basic bXktcGFzc3dvcmQ6"})  # my-password:
    entry = HistoryEntry.objects.get()
    assert (entry.deed, entry.object_name) == ("user.login", "")


def test_only_an_invalid_token_is_recorded_as_a_login(client: Client, cloud_admin: User) -> None:
    _, token = AuthToken.objects.create(cloud_admin)
    client.get("/v1/audits", headers={"X-Auth-Token": token})
    assert recorded() == []
    client.get("/v1/audits", headers={"X-Auth-Token": "made-up"})
    assert recorded() == [("", "user.login", "refused")]
    assert "made-up" not in str(HistoryEntry.objects.values().get())


def test_recorded_failed_logins_are_limited(client: Client, db: None) -> None:
    for number in range(logins.failure_limit.most + 20):
        client.get("/v1/audits", headers={"X-Auth-Token": "made-up"}, REMOTE_ADDR=f"192.0.2.{number}")
    assert HistoryEntry.objects.count() == logins.failure_limit.most
    assert AND_FURTHER.read(HistoryEntry.objects.order_by("-pk")[0].message)


def test_refused_metrics_request_is_recorded(stranger: User) -> None:
    assert Caller(stranger).client.get("/metrics").status_code == 403
    entry = HistoryEntry.objects.get()
    assert (entry.user, entry.deed, entry.outcome) == (stranger.username, "metrics.view", "refused")


def test_history_export_is_recorded_with_its_filters(
    cloud_admin: User, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    Caller(cloud_admin, "1.13").get("/history/export?format=jsonl&user=rosa")
    client.force_login(cloud_admin)
    client.get(reverse("history:export", args=["csv"]))
    call_command("export_history", person="rosa")
    entries = HistoryEntry.objects.filter(deed="history.export").order_by("pk")
    assert list(entries.values_list("user", "details__format")) == [
        *[(cloud_admin.username, "jsonl"), (cloud_admin.username, "csv"), ("rosa", "csv")]
    ]
    assert entries[0].details == {"format": "jsonl", "user": "rosa"}
