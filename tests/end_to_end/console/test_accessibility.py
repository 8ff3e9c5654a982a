"""Conformance of the pages of the console to WCAG 2.2 AA, checked by axe-core: light and dark, at two widths."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, resolve, reverse
from django.utils import timezone
from knox.models import AuthToken
from playwright.sync_api import Page

from actions.models import Action, ActionEvent
from plans.models import ActionPlan
from tests.actions.exclusions.builders import make_exclusion
from tests.builders import (
    make_audit,
    make_cluster,
    make_flavor,
    make_member,
    make_node,
    make_plan,
    make_policy,
    make_profile,
    make_resource,
    make_server,
    make_stack,
)
from tests.end_to_end.console.accessibility import find_problems
from tests.end_to_end.console.browser import browser_page
from tests.watcher_site.notifications.relaying import make_undelivered, subscribe_to
from watcher_site.accounts.projects import add_member

pytestmark = [
    pytest.mark.longest,
    pytest.mark.any_database,
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]

DESK, PHONE = {"width": 1400, "height": 900}, {"width": 390, "height": 844}
ALL = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "rules": {"label-content-name-mismatch": {"enabled": True}},
}
# The rules whose outcome depends on the colours and on the width.
OF_LOOK = {"runOnly": {"type": "rule", "values": ["color-contrast", "target-size"]}}
# Loading each page and axe-core again would take most of the time. Rows after the third are like these.
SHOW = """async (path) => {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${answer.status} of ${path}`);
  const shown = new DOMParser().parseFromString(await answer.text(), "text/html");
  const links = [...shown.querySelectorAll("a[href^='/console/']")].map((link) => link.getAttribute("href"));
  shown.querySelectorAll("tbody tr:nth-child(n + 4)").forEach((row) => row.remove());
  if (path !== "/console/") shown.querySelectorAll("body > nav > *").forEach((part) => part.remove());
  document.title = shown.title;
  document.body.replaceWith(shown.body);
  return links.map((link) => link.split(/[?#]/)[0]);
}"""
WIDER = """() => document.documentElement.scrollWidth > innerWidth
  ? [`${document.documentElement.scrollWidth} pixels wide, with a window of ${innerWidth}`] : []"""
SET_THEME = "(theme) => document.documentElement.setAttribute('data-bs-theme', theme)"
DOWNLOADS = {"history:export"}
# Views without a page of their own: they execute an operation, or redirect to a page or to another site.
WITHOUT_PAGE = {
    *("account:preferences", "save-filters", "delete-filters", "logout", "stacks:resource", "users:enable"),
    *("users:groups", "users:add-project", "users:remove-project"),
    *("plans:approve", "plans:withdraw-approval", "plans:on-failure", "plans:continue", "plans:suspend"),
    *("plans:resume", "audits:suspend", "audits:resume", "clusters:enable", "exclusions:enable"),
    *("actions:skip", "actions:restore", "actions:reason", "actions:suspend", "actions:resume"),
    *("notifications:test", "notifications:resend"),
    *("login-sso", "login-sso-end", "login-sso-token", "login-openid", "login-openid-callback"),
}
# Dialogs of selected actions, which open with POST: `test_dialogs_of_selected_actions_conform_to_wcag`.
DIALOGS = {"plans:skip", "plans:restore", "pruning:skip", "pruning:restore"}
# Pages for users of Keystone, and those without a session.
OTHER_SESSIONS = {"login", "login-keystone", "login-scope", "account:scope"}


@pytest.fixture
def administrator(transactional_db: None, cloud_admin: User, client: Client) -> str:
    """Return the session of an administrator."""
    client.force_login(cloud_admin)
    return client.cookies["sessionid"].value


@pytest.fixture
def member(transactional_db: None, client: Client) -> str:
    """Return the session of a member of a project that has a server, a cluster, and a stack with a nested one."""
    make_flavor("small")
    server = make_server("web-1", make_node(), project_id="acme")
    make_member("node", cluster=make_cluster("web", project_id="acme", profile=make_profile()), server=server, index=1)
    stack = make_stack("shop", project_id="acme", status="CREATE_COMPLETE")
    group = make_resource(stack, "group", type="scaling_group", status="CREATE_COMPLETE")
    make_resource(make_stack("inner", holder=group, project_id="acme"), "web", physical_id=str(server.uuid))
    client.force_login(User.objects.create_user("mia", password="mia-password"))
    add_member("mia", "acme")
    return client.cookies["sessionid"].value


@pytest.fixture
def marked(member: str) -> list[str]:
    """Return the pages of records of the project that are marked unhealthy, or wait for capacity."""
    server = make_server("broken", make_node("another"), project_id="acme", unhealthy_reason="It does not answer.")
    stack = make_stack("broken", project_id="acme", status="CHECK_FAILED")
    make_resource(stack, "web", status="CHECK_FAILED", physical_id=str(server.uuid))
    pending = make_server("waiting", project_id="acme", state="pending")
    return [
        *(reverse("projects:server", args=[one.uuid]) for one in (server, pending)),
        reverse("projects:stack", args=[stack.uuid]),
    ]


@contextmanager
def opened(address: str, session: str) -> Iterator[Page]:
    with browser_page(base_url=address, viewport=DESK, reduced_motion="reduce") as page:
        page.context.add_cookies([{"name": "sessionid", "value": session, "url": address}])
        yield page


@pytest.fixture
def starts(transactional_db: None) -> list[str]:
    """Return the first pages of the crawl: the overview of a demonstration, and plans in many states."""
    call_command("load_demonstration", verbosity=0)
    audit = make_audit("x" * 63, state="SUCCEEDED")
    states = [state for state in ActionPlan.State.values if state != "DELETED"]
    plans = {state: make_plan({"1": [], "2": ["1"]}, audit=audit, state=state) for state in states}
    running = make_plan({state: [] for state in Action.State.values}, state="ONGOING", suspended_by="bob")
    for state in Action.State.values:
        running.actions.filter(input_parameters__message=state).update(state=state, status_message=f"It is {state}.")
    begun = list(running.actions.exclude(state__in=["PENDING", "SKIPPED"]))
    running.actions.filter(pk__in=[one.pk for one in begun]).update(attempt=1, start_time=timezone.now())
    ActionEvent.objects.bulk_create(ActionEvent(action=one, event="execute", host="worker") for one in begun)
    shown = [running, plans["FAILED"], plans["SUPERSEDED"], plans["RECOMMENDED"]]
    search = f"{reverse('search')}?{urlencode({'q': 'web'})}"
    timeline = reverse("plans:timeline", args=[running.uuid])
    pages = [search, timeline, f"{timeline}?by=worker", reverse("plans:preflight", args=[running.uuid])]
    return [
        reverse("home"),
        *(reverse("plans:detail", args=[plan.uuid]) for plan in shown),
        *pages,
        *pages_of_records(),
    ]


def pages_of_records() -> list[str]:
    """Make records that the demonstration does not have, and return their pages, which lead to their operations."""
    exclusion = make_exclusion("frozen", action_types=["migrate"])
    subscription = subscribe_to("http://192.0.2.7/")
    make_undelivered(subscription)
    server = make_server("broken", make_node("another"), unhealthy_reason="It does not answer.")
    node = make_member("broken", cluster=make_cluster("broken"), index=1, unhealthy_reason="It does not answer.")
    stack = make_stack("broken", status="CHECK_FAILED")
    make_resource(stack, "web", status="CHECK_FAILED")
    users = [User.objects.get(username="alice"), User.objects.create_user("bob")]
    for user in users:
        AuthToken.objects.create(user)
    return [
        reverse("exclusions:detail", args=[exclusion.uuid]),
        reverse("cluster:policy", args=[make_policy("not attached", "senlin.policy.scaling-1.0").uuid]),
        reverse("notifications:detail", args=[subscription.uuid]),
        reverse("notifications:undelivered"),
        reverse("cluster:server", args=[server.uuid]),
        reverse("cluster:member", args=[node.uuid]),
        reverse("stacks:detail", args=[stack.uuid]),
        reverse("audits:detail", args=[make_audit("waiting", state="PENDING").uuid]),
        reverse("account:page"),
        reverse("account:secret"),
        reverse("users:detail", args=[users[1].pk]),
    ]


def names_of_views(patterns: Iterable[URLPattern | URLResolver], space: str = "") -> Iterator[str]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            inner = f"{space}{pattern.namespace}:" if pattern.namespace else space
            yield from names_of_views(pattern.url_patterns, inner)
        elif pattern.name:
            yield f"{space}{pattern.name}"


def check(page: Page) -> list[str]:
    """Return the problems that axe-core finds on the current page."""
    found = find_problems(page, ALL) + page.evaluate(WIDER)
    page.evaluate(SET_THEME, "dark")
    page.set_viewport_size(PHONE)
    found += find_problems(page, OF_LOOK) + page.evaluate(WIDER)
    page.evaluate(SET_THEME, "light")
    page.set_viewport_size(DESK)
    return found


def follow_links(page: Page, starts: list[str]) -> tuple[set[str], dict[str, list[str]]]:
    """Follow all links to one page of each view; return the views, and the problems by path."""
    page.goto(reverse("account:password"))
    kinds, found, paths = set(DOWNLOADS), {}, deque(starts)
    while paths:
        path = paths.popleft()
        kinds.add(resolve(path.partition("?")[0]).view_name)
        links = {resolve(link).view_name: link for link in page.evaluate(SHOW, path)}
        paths += [link for kind, link in links.items() if kind not in kinds]
        kinds |= set(links)
        found[re.sub("[0-9a-f-]{36}", "…", path)] = check(page)
    return kinds, {path: problems for path, problems in found.items() if problems}


def test_every_page_of_the_console_conforms_to_wcag(administrator: str, starts: list[str], live_server: Any) -> None:
    with opened(live_server.url, administrator) as page:
        kinds, found = follow_links(page, starts)
        assert found == {}
        views = set(names_of_views(get_resolver("watcher_site.console.urls").url_patterns))
        missing = {name for name in views - kinds if not name.startswith("projects:")}
        assert missing == WITHOUT_PAGE | DIALOGS | OTHER_SESSIONS
        assert page.complaints == []


def test_pages_of_a_project_conform_to_wcag(member: str, marked: list[str], live_server: Any) -> None:
    with opened(live_server.url, member) as page:
        pages = [reverse(f"projects:{name}") for name in ("servers", "stacks", "clusters")]
        kinds, found = follow_links(page, [*pages, *marked])
        assert found == {}
        views = set(names_of_views(get_resolver("watcher_site.console.urls").url_patterns))
        assert {name for name in views - kinds if name.startswith("projects:")} == set()


@pytest.fixture
def prunable(transactional_db: None) -> str:
    """Return the page of a plan with an action that can be skipped and one that can be restored."""
    plan = make_plan({"1": [], "2": []})
    plan.actions.filter(input_parameters__message="2").update(state="SKIPPED", skipped_by="bob")
    return reverse("plans:detail", args=[plan.uuid])


@pytest.mark.parametrize("query", ["", "?state=PENDING", "?state=SKIPPED"])
def test_dialogs_of_selected_actions_conform_to_wcag(
    administrator: str, prunable: str, live_server: Any, query: str
) -> None:
    buttons = {
        "": "Skip 1 selected…",
        "?state=PENDING": "Skip 1 matching…",
        "?state=SKIPPED": "Restore 1 matching…",
    }
    with opened(live_server.url, administrator) as page:
        for address in (prunable, reverse("actions:list")):
            page.goto(address + query)
            page.locator("[data-choose-all]").check()
            page.get_by_role("button", name=buttons[query]).click()
            page.get_by_role("dialog").wait_for()
            assert check(page) == [], address
