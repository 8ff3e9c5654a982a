"""Rules of a policy file for pages and buttons of the console."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import get_resolver, reverse
from pytest_django import Settings

from plans.models import ActionPlan
from tests.builders import action, make_cluster, make_plan, make_server
from tests.watcher_site.authorization.conftest import Write
from watcher_site.accounts.projects import add_member
from watcher_site.accounts.tokens import make_token
from watcher_site.authorization.permissions import policy_of
from watcher_site.console.pages import Page
from watcher_site.management.commands.generate_policy import default_rules

pytestmark = pytest.mark.django_db


def login(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def page_of(client: Client, plan: ActionPlan) -> str:
    return client.get(reverse("plans:detail", args=[plan.uuid])).content.decode()


def test_start_button_is_hidden_and_the_start_refused_without_the_policy(write: Write, cloud_admin: User) -> None:
    write('"action_plan:start": "!"')
    client, plan = login(cloud_admin), make_plan({"a": []})
    where = reverse("plans:start", args=[plan.uuid])
    assert where not in page_of(client, plan)
    assert reverse("plans:delete", args=[plan.uuid]) in page_of(client, plan)
    answer = client.post(where)
    assert answer.status_code == 403
    text = answer.content.decode()
    assert "your account does not have the permission for this" in text
    assert "A cloud administrator" not in text
    assert ActionPlan.objects.get().state == ActionPlan.State.RECOMMENDED


def test_rule_grants_a_group_more_than_its_permissions(write: Write, reader: User) -> None:
    client, plan = login(reader), make_plan({"a": []})
    where = reverse("plans:start", args=[plan.uuid])
    assert where not in page_of(client, plan)
    write('"action_plan:start": "role:reader"')
    assert where in page_of(client, plan)
    assert client.post(where).status_code == 302
    assert ActionPlan.objects.get().state == ActionPlan.State.PENDING


@pytest.mark.parametrize(
    ("policy", "verb", "approved_by"),
    [("approve", "approve", None), ("withdraw_approval", "withdraw-approval", "bob")],
)
def test_approval_button_is_hidden_and_the_approval_refused_without_the_policy(
    settings: Settings, write: Write, cloud_admin: User, policy: str, verb: str, approved_by: str | None
) -> None:
    settings.PLAN_APPROVAL = True
    client, plan = login(cloud_admin), make_plan({"a": []}, approved_by=approved_by)
    where = reverse(f"plans:{verb}", args=[plan.uuid])
    assert where in page_of(client, plan)
    write(f'"action_plan:{policy}": "!"')
    assert where not in page_of(client, plan)
    assert client.post(where).status_code == 403


def test_page_refused_by_a_rule_is_not_in_the_navigation(write: Write, cloud_admin: User) -> None:
    write('"audit:get_all": "!"')
    client = login(cloud_admin)
    assert f'href="{reverse("audits:list")}"' not in client.get("/console/").content.decode()
    assert client.get(reverse("audits:list")).status_code == 403


def test_page_of_one_object_uses_the_policy_of_single_objects(write: Write, cloud_admin: User) -> None:
    write('"action_plan:get": "!"')
    client, plan = login(cloud_admin), make_plan({"a": []})
    assert client.get(reverse("plans:list")).status_code == 200
    assert client.get(reverse("plans:detail", args=[plan.uuid])).status_code == 403


def test_operations_with_a_shared_permission_have_separate_policies(write: Write, cloud_admin: User) -> None:
    write('"cluster:scale_in": "!"')
    client, cluster = login(cloud_admin), make_cluster()
    page = client.get(reverse("clusters:detail", args=[cluster.uuid])).content.decode()
    addresses = [reverse(f"clusters:{name}", args=[cluster.uuid]) for name in ("scale-out", "scale-in")]
    assert [address in page for address in addresses] == [True, False]
    assert [client.get(address).status_code for address in addresses] == [200, 403]


def test_rule_can_depend_on_the_project_of_the_object(write: Write, cloud_admin: User) -> None:
    write('"server:mark": "project_id:%(project_id)s"')
    add_member("alice", "shop")
    client = login(cloud_admin)
    for server, is_shown in ((make_server("a", project_id="shop"), True), (make_server("b", project_id="x"), False)):
        where = reverse("marks:mark-server", args=[server.uuid])
        assert (where in client.get(reverse("cluster:server", args=[server.uuid])).content.decode()) is is_shown
        assert (client.get(where).status_code == 200) is is_shown


def test_skip_in_the_console_uses_the_policy_of_the_api_request(write: Write, cloud_admin: User) -> None:
    write('"action:update": "right:by_body"\n"action_plan:skip": "!"')
    client, plan = login(cloud_admin), make_plan({"a": []})
    assert client.post(reverse("actions:skip", args=[action(plan, "a").uuid])).status_code == 302
    assert client.post(reverse("plans:skip", args=[plan.uuid])).status_code == 403


def test_token_buttons_are_hidden_and_token_requests_refused_without_the_policy(write: Write, reader: User) -> None:
    made, _ = make_token(reader)
    client = login(reader)
    addresses = [reverse("account:new-token"), reverse("account:revoke-token", args=[made.token_key])]
    for rule, is_allowed in (("user_id:%(user_id)s", True), ("role:admin", False)):
        write(f'"token:create": "{rule}"\n"token:delete": "{rule}"')
        page = client.get(reverse("account:page")).content.decode()
        assert [address in page for address in addresses] == [is_allowed] * 2
        assert [client.get(address).status_code for address in addresses] == [200 if is_allowed else 403] * 2


def test_login_is_required_by_any_rules(write: Write, client: Client) -> None:
    write('"action_plan:get_all": "@"')
    assert client.get(reverse("plans:list")).status_code == 302


def test_query_count_of_a_page_with_a_policy_file_does_not_depend_on_its_rows(write: Write, cloud_admin: User) -> None:
    client, small, large = login(cloud_admin), make_plan({"a": []}), make_plan({name: [] for name in "abcdefgh"})
    page_of(client, small)
    with CaptureQueriesContext(connection) as before:
        page_of(client, small)
    write('"action_plan:start": "role:admin"\n"action:update": "right:by_body"\n"action:get_all": "role:admin"')
    numbers = []
    for plan in (small, large):
        with CaptureQueriesContext(connection) as queries:
            page_of(client, plan)
        numbers.append(len(queries) - len(before))
    # The groups of the account, and the object of the page.
    assert numbers == [2, 2]


def pages(patterns: Any) -> Iterator[type[Page]]:
    for pattern in patterns:
        view = getattr(pattern.callback, "view_class", None) if hasattr(pattern, "callback") else None
        if view is not None and issubclass(view, Page):
            yield view
        yield from pages(getattr(pattern, "url_patterns", ()))


def test_every_page_has_a_policy_of_the_generated_file() -> None:
    found = {view for view in pages(get_resolver().url_patterns) if view.permission_required}
    for view in found:
        names = [view.permission_required] if isinstance(view.permission_required, str) else view.permission_required
        policies = [view.policy or policy_of(names[0]), *map(policy_of, names[1:])]
        assert set(policies) <= default_rules().keys(), view
    assert len(found) > 60
