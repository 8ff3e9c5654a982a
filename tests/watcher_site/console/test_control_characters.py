"""Pages of the console replace control characters in names by marks."""

import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone
from django.utils.html import escape

from actions.models import Action, ActionEvent
from cluster.models import Cluster, PolicyBinding, Server, Stack
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
    make_pool,
    make_profile,
    make_resource,
    make_server,
    make_stack,
    make_volume,
)
from tests.watcher_site.notifications.relaying import make_undelivered
from watcher_site import history
from watcher_site.accounts.projects import add_member
from watcher_site.console.pages import ListPage
from watcher_site.models import HistoryEntry, Subscription
from watcher_site.request_context import CallingContext
from watcher_site.templatetags.names import INVISIBLE_IN_HTML, mark_invisible

pytestmark = pytest.mark.any_database

# An override of the direction, an escape sequence, and HTML.
HOSTILE = "web\u202egnp.\x1b[31m<b>\u2066"
PROJECT = "acme"


def lists(patterns: Any = None, space: str = "") -> Iterator[str]:
    """Yield the names of all lists of the console that need no argument."""
    for pattern in get_resolver("watcher_site.console.urls").url_patterns if patterns is None else patterns:
        if isinstance(pattern, URLResolver):
            yield from lists(pattern.url_patterns, f"{space}{pattern.namespace}:" if pattern.namespace else space)
        elif isinstance(pattern, URLPattern) and not pattern.pattern.converters:
            view = getattr(pattern.callback, "view_class", None)
            if view is not None and issubclass(view, ListPage):
                yield f"{space}{pattern.name}"


LISTS = sorted(lists())


def make_rows(name: str = HOSTILE) -> ActionPlan:
    """Make a row of each kind with a name, objects of the project `PROJECT` included, and return the plan."""
    node = make_node(name)
    server = make_server(name, node, unhealthy_reason=name, state="pending", project_id=PROJECT)
    make_server(f"{name} 2", None, state="pending", project_id=PROJECT)
    make_flavor("small")
    profile = make_profile(name)
    cluster = make_cluster(name, profile=profile, project_id=PROJECT)
    make_member(name, server=server, cluster=cluster, profile=profile)
    PolicyBinding.objects.create(cluster=cluster, policy=make_policy(name), priority=1)
    stack = make_stack(name, project_id=PROJECT)
    make_resource(stack, name, physical_id=str(server.uuid), status="CHECK_FAILED", status_reason=name)
    make_volume(name, make_pool(name))
    make_exclusion(name, by=name, reason=name)
    plan = make_plan(audit=make_audit(name), status_message=name)
    parameters = {"resource_id": str(server.uuid), "resource_name": name, "source_node": name}
    ran = Action.objects.create(
        action_plan=plan,
        action_type="migrate",
        input_parameters=parameters,
        status_message=name,
        skipped_by=name,
        attempt=1,
        start_time=timezone.now(),
    )
    ActionEvent.objects.create(action=ran, event="execute", host=name, details=name)
    HistoryEntry.objects.create(
        user=name, deed="server.create", object_type="server", object_uuid=uuid4(), object_name=name
    )
    make_undelivered(Subscription.objects.create(name=name, url=f"https://example.com/{name}"))
    User.objects.create_user(name)
    return plan


@pytest.fixture
def browser(client: Client, cloud_admin: User) -> Client:
    client.force_login(User.objects.create_superuser("root"))
    add_member("root", PROJECT)
    return client


def text_of(browser: Client, address: str) -> str:
    response = browser.get(address)
    assert response.status_code == 200
    return str(response.content.decode())


@pytest.mark.django_db
@pytest.mark.parametrize("name", LISTS)
def test_list_marks_control_characters(browser: Client, name: str) -> None:
    make_rows()
    text = text_of(browser, reverse(name))
    assert '<span class="control">U+202E</span>' in text
    assert INVISIBLE_IN_HTML.findall(text) == []


@pytest.mark.django_db
def test_list_of_plans_marks_control_characters_of_the_user_who_started_a_plan(browser: Client) -> None:
    make_plan({"a": []}, state="ONGOING", started_by=HOSTILE, start_time=timezone.now())
    assert "by webU+202Egnp.␛[31m" in text_of(browser, reverse("plans:list"))


@pytest.mark.django_db
def test_list_of_actions_marks_control_characters_of_the_object(browser: Client) -> None:
    make_rows()
    marks = [f'<span class="control">{mark}</span>' for mark in ("U+202E", "␛", "U+2066")]
    cell = f'<bdi>web{marks[0]}gnp.{marks[1]}[31m&lt;b&gt;{marks[2]}</bdi> <span class="manner">'
    assert cell in text_of(browser, reverse("actions:list"))


@pytest.mark.django_db
@pytest.mark.parametrize("page", ["", "preflight/", "timeline/", "timeline/?by=worker", "timeline/?by=node"])
def test_plan_page_marks_control_characters(browser: Client, page: str) -> None:
    plan = make_rows()
    text = text_of(browser, f"{reverse('plans:detail', args=[plan.uuid])}{page}")
    assert "U+202E" in text
    assert [text[match.start() - 60 : match.end()] for match in INVISIBLE_IN_HTML.finditer(text)] == []


@pytest.mark.django_db
def test_timeline_marks_control_characters_of_processes_and_parameters(browser: Client) -> None:
    text = text_of(browser, reverse("plans:timeline", args=[make_rows().uuid]))
    cells = re.findall(r'<span class="manner">.*?</td>|<td data-label="Process".*?</td>', text, re.DOTALL)
    assert len(cells) == 2
    assert [cell for cell in cells if '<span class="control">U+202E</span>' not in cell] == []


def records(patterns: Any = None, space: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the names of all pages and dialogs about one record, with its model."""
    for pattern in get_resolver("watcher_site.console.urls").url_patterns if patterns is None else patterns:
        if isinstance(pattern, URLResolver):
            yield from records(pattern.url_patterns, f"{space}{pattern.namespace}:" if pattern.namespace else space)
        elif list(pattern.pattern.converters) in (["uuid"], ["pk"]):
            view = pattern.callback.view_class
            if "get" in view.http_method_names:
                yield f"{space}{pattern.name}", getattr(view, "model", None)


# The view of this page names no model.
RECORDS = dict(records()) | {"notifications:change": Subscription}
# A dialog that the state of the record does not allow redirects to the page of the record.
ANSWERS = {200, 302}
# Values of fields are sent back unchanged.
FIELD = re.compile(r"<textarea\b.*?</textarea>|<input\b[^>]*>", re.DOTALL)


def address_of_newest(name: str) -> str:
    """Return the address of a page about the newest record of its model. Raises if there is none."""
    model = RECORDS[name]
    key = "uuid" if hasattr(model, "uuid") else "pk"
    return reverse(name, kwargs={key: getattr(model._default_manager.latest("pk"), key)})


@pytest.mark.django_db
@pytest.mark.parametrize("name", sorted(RECORDS))
def test_record_page_marks_control_characters(browser: Client, name: str) -> None:
    make_rows()
    response = browser.get(address_of_newest(name))
    assert response.status_code in ANSWERS
    text = FIELD.sub("", response.content.decode())
    assert [ascii(text[match.start() - 60 : match.end()]) for match in INVISIBLE_IN_HTML.finditer(text)] == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "model"), [("cluster:server", Server), ("clusters:detail", Cluster), ("stacks:detail", Stack)]
)
def test_heading_and_title_mark_control_characters(browser: Client, name: str, model: Any) -> None:
    make_rows()
    text = text_of(browser, reverse(name, args=[model.objects.order_by("pk")[0].uuid]))
    mark = '<span class="control">{}</span>'
    assert (
        f"<h1><bdi>web{mark.format('U+202E')}gnp.{mark.format('␛')}[31m&lt;b&gt;{mark.format('U+2066')}</bdi>" in text
    )
    assert re.search(r"<title>\s*\w+ webU\+202Egnp\.␛\[31m&lt;b&gt;U\+2066", text)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("description", "mark"), [("", '<span class="control">{}</span>'), ("a long description " * 20, "{}")]
)
def test_history_marks_control_characters_of_details(browser: Client, description: str, mark: str) -> None:
    details = {"name": {"from": "web", "to": HOSTILE}, "description": description}
    history.record("cluster.update", "web", caller=CallingContext(user="rosa"), details=details)
    marks = [mark.format(character) for character in ("U+202E", "␛", "U+2066")]
    text = text_of(browser, reverse("history:list"))
    assert f"name: web → web{marks[0]}gnp.{marks[1]}[31m&lt;b&gt;{marks[2]}" in text


@pytest.mark.django_db
def test_subscription_page_marks_control_characters_of_the_name_and_the_receiver(browser: Client) -> None:
    make_rows()
    text = text_of(browser, reverse("notifications:detail", args=[Subscription.objects.get().uuid]))
    shown = "web{}gnp.{}[31m&lt;b&gt;{}".format(
        *(f'<span class="control">{c}</span>' for c in ("U+202E", "␛", "U+2066"))
    )
    assert f"<h1><bdi>{shown}</bdi></h1>" in text
    assert f"https://example.com/{shown}" in text


@pytest.mark.django_db
@pytest.mark.parametrize("field", ["name", "url"])
def test_form_of_a_subscription_refuses_control_characters(browser: Client, field: str) -> None:
    values = {"kind": "webhook", "name": "web", "url": "https://example.com/", "event_types": "*"}
    text = browser.post(reverse("notifications:new"), values | {field: f"{values[field]}\x07a"}).content.decode()
    assert "must not contain control or format characters, but contains U+0007." in text
    assert not Subscription.objects.exists()


@pytest.mark.django_db
def test_form_keeps_the_original_name(browser: Client) -> None:
    make_rows()
    text = text_of(browser, reverse("clusters:change", args=[Cluster.objects.get().uuid]))
    assert f'value="{escape(HOSTILE)}"' in text


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<title>a\u202e</title>", "<title>aU+202E</title>"),
        ('<option value="1">a\u202e</option>', '<option value="1">aU+202E</option>'),
        ("<svg><text>a\u202e</text></svg>", "<svg><text>aU+202E</text></svg>"),
        ("<textarea>a\u202e</textarea>\u202e", '<textarea>a\u202e</textarea><span class="control">U+202E</span>'),
    ],
)
def test_text_elements_have_plain_marks_and_textareas_none(html: str, expected: str) -> None:
    assert mark_invisible(html) == expected


def test_html_without_control_characters_is_unchanged() -> None:
    html = '<td title="a">b\n\t<i>c</i></td>'
    assert mark_invisible(html) == html


def test_control_characters_are_marked_in_text_and_in_titles() -> None:
    html = mark_invisible('<a href="/\u202e" title="a\u202eb">c\u202ed</a>')
    assert html == '<a href="/\u202e" title="aU+202Eb">c<span class="control">U+202E</span>d</a>'
