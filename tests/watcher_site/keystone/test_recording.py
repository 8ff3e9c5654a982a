"""Operations of Keystone users, who have no account: history records their names and ids."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from actions.models import Action
from cluster.models import Server
from plans.models import ActionPlan
from tests.api import TokenCaller
from tests.builders import (
    action,
    make_audit,
    make_cluster,
    make_flavor,
    make_node,
    make_plan,
    make_profile,
    make_server,
    make_stack,
    make_strategy,
)
from tests.plans.inline import run_waiting
from tests.watcher_site.keystone.identity import PROJECT, Keystone
from watcher_site.models import HistoryEntry

pytestmark = pytest.mark.django_db
SKIP = [{"op": "replace", "path": "/state", "value": "SKIPPED"}]
Request = tuple[str, str, Any]


@pytest.fixture
def caller(keystone: Keystone, settings: Settings) -> TokenCaller:
    settings.WEBHOOK_PRIVATE_ADDRESSES = True
    return TokenCaller(keystone.issue("rosa", "admin"))


def start() -> Request:
    return "POST", f"/action_plans/{make_plan({'a': []}).uuid}/start", None


def cancel() -> Request:
    plan = make_plan({"a": []}, state="PENDING")
    return "PATCH", f"/action_plans/{plan.uuid}", [{"op": "replace", "path": "/state", "value": "CANCELLED"}]


def schedule() -> Request:
    return "POST", f"/action_plans/{make_plan({'a': []}).uuid}/schedule", {"start_at": "2099-01-01T00:00:00Z"}


def skip() -> Request:
    return "PATCH", f"/actions/{action(make_plan({'a': []}), 'a').uuid}", SKIP


def skip_several() -> Request:
    plan = make_plan({"a": []})
    return "POST", f"/action_plans/{plan.uuid}/skip", {"actions": [str(action(plan, "a").uuid)]}


def signal() -> Request:
    return "POST", f"/action_plans/{make_plan({'a': []}, state='ONGOING').uuid}/signal", {"signal": "SUSPEND"}


def create_audit() -> Request:
    strategy = make_strategy()
    return "POST", "/audits", {"audit_type": "ONESHOT", "goal": strategy.goal.name, "strategy": strategy.name}


def create_template() -> Request:
    return "POST", "/audit_templates", {"name": "nightly", "goal": make_strategy().goal.name}


def delete_audit() -> Request:
    return "DELETE", f"/audits/{make_audit(state='SUCCEEDED').uuid}", None


def create_exclusion() -> Request:
    return "POST", "/exclusions", {"name": "no migrations", "action_types": ["migrate"]}


def create_subscription() -> Request:
    body = {"name": "pager", "url": "http://192.0.2.7/events", "event_types": ["action.*"]}
    return "POST", "/subscriptions", body


def create_profile() -> Request:
    return "POST", "/profiles", {"name": "web", "spec": {"flavor": make_flavor().name}}


def create_cluster() -> Request:
    make_node()
    return "POST", "/clusters", {"name": "web", "profile": make_profile().name}


def delete_cluster() -> Request:
    return "DELETE", f"/clusters/{make_cluster().uuid}", None


def create_server() -> Request:
    make_node()
    return "POST", "/servers", {"server": {"name": "web", "flavorRef": make_flavor().name, "project_id": PROJECT}}


def mark_server() -> Request:
    return "PATCH", f"/servers/{make_server().uuid}/health", {"mark_unhealthy": True, "resource_status_reason": "hot"}


def create_stack() -> Request:
    template = {"resources": {"web": {"type": "server", "properties": {"flavor": make_flavor().name}}}}
    return "POST", "/stacks", {"name": "shop", "template": template, "project_id": PROJECT}


def delete_stack() -> Request:
    stack = make_stack("shop", project_id=PROJECT)
    return "DELETE", f"/stacks/{stack.name}/{stack.uuid}", None


OPERATIONS: list[Callable[[], Request]] = [
    *(start, cancel, schedule, skip, skip_several, signal, create_audit, create_template, delete_audit),
    *(create_exclusion, create_subscription, create_profile, create_cluster, delete_cluster, create_server),
    *(mark_server, create_stack, delete_stack),
]


@pytest.mark.parametrize("prepare", OPERATIONS, ids=lambda prepare: prepare.__name__)
def test_operation_is_recorded_with_user_name_user_id_and_project(
    caller: TokenCaller, prepare: Callable[[], Request]
) -> None:
    answer = caller.call(*prepare())
    assert answer.status_code < 300, answer.content
    entries = HistoryEntry.objects.values_list("user", "user_id", "project_id", "outcome")
    assert set(entries) == {("rosa", "id-of-rosa", PROJECT, "success")}
    assert not User.objects.exists()


def test_longest_user_name_is_stored_everywhere(keystone: Keystone) -> None:
    name = "n" * 255
    caller, plan = TokenCaller(keystone.issue(name, "admin")), make_plan({"a": [], "b": []})
    assert caller.patch(f"/actions/{action(plan, 'a').uuid}", SKIP).status_code == 200
    assert caller.post(f"/action_plans/{plan.uuid}/start").status_code == 200
    assert caller.post(f"/action_plans/{plan.uuid}/signal", {"signal": "SUSPEND"}).status_code < 300
    assert ActionPlan.objects.values_list("started_by", "suspended_by").get() == (name, name)
    assert Action.objects.filter(skipped_by=name).exists()


def test_plan_continues_after_the_token_expired(keystone: Keystone, caller: TokenCaller) -> None:
    plan = make_plan({"a": [], "b": ["a"]})
    caller.post(f"/action_plans/{plan.uuid}/start")
    for token in keystone.tokens.values():
        token["expires_at"] = "2020-01-01T00:00:00.000000Z"
    run_waiting()
    assert ActionPlan.objects.get().state == ActionPlan.State.SUCCEEDED


def test_server_is_owned_by_the_keystone_user_id(caller: TokenCaller) -> None:
    caller.call(*create_server())
    assert Server.objects.get().user_id == "id-of-rosa"
    [row] = caller.get(f"/servers/{Server.objects.get().uuid}/os-instance-actions").json()["instanceActions"]
    assert (row["user_id"], row["project_id"]) == ("id-of-rosa", PROJECT)


def test_history_is_filtered_by_user_id(keystone: Keystone, caller: TokenCaller) -> None:
    caller.call(*start())
    TokenCaller(keystone.issue("ines", "admin")).call(*start())
    found = caller.get("/history/detail?user_id=id-of-ines").json()["history"]
    assert [(one["user"], one["user_id"]) for one in found] == [("ines", "id-of-ines")]


def test_history_has_no_user_ids_before_1_14(keystone: Keystone, caller: TokenCaller) -> None:
    caller.call(*start())
    earlier = TokenCaller(caller.headers["X-Auth-Token"], "1.13")
    [entry] = earlier.get("/history/detail").json()["history"]
    assert "user_id" not in entry
    assert earlier.get("/history?user_id=id-of-rosa").status_code == 400


def test_users_with_the_same_name_are_recorded_with_different_ids(keystone: Keystone) -> None:
    tokens = [keystone.issue("rosa", "admin") for _ in range(2)]
    keystone.tokens[tokens[1]]["user"] = {"id": "another", "name": "rosa", "domain": {"id": "d", "name": "other"}}
    for token in tokens:
        TokenCaller(token).call(*start())
    assert set(HistoryEntry.objects.values_list("user", "user_id")) == {("rosa", "id-of-rosa"), ("rosa", "another")}
