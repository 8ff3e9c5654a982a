"""Names on pages: UUIDs in messages as links, generated names of audits, names with control characters."""

import re
from collections.abc import Iterator
from datetime import timedelta
from html.parser import HTMLParser
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import lazy
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString
from django.utils.translation import override

from actions.models import Action, ActionEvent, ActionParent
from plans.models import ActionPlan
from tests.builders import action, make_node, make_plan
from tests.watcher_site.console.test_control_characters import LISTS, PROJECT, RECORDS, make_rows
from watcher_site.accounts.projects import add_member
from watcher_site.console.naming import name_objects
from watcher_site.templatetags.console import ago, brief, head, linked, shortened
from watcher_site.templatetags.names import name, visible

pytestmark = pytest.mark.any_database


@pytest.mark.django_db
def test_uuid_in_a_message_links_to_its_object() -> None:
    plan = make_plan({"a": []})
    text = linked(f"superseded by {plan.uuid}: {action(plan, 'a').uuid}.")
    named = f'<bdi>nop</bdi> <span class="uuid">{str(plan.uuid)[:8]}</span>'
    assert f'<a href="/console/plans/{plan.uuid}/" title="{plan.uuid}">{named}</a>' in text
    assert f'<a href="/console/actions/{action(plan, "a").uuid}/"' in text
    assert "><bdi>nop a</bdi></a>." in text


@pytest.mark.django_db
def test_node_is_named_by_its_host_name() -> None:
    assert linked(str(make_node("compute1").uuid)).endswith("><bdi>compute1</bdi></a>")


@pytest.mark.django_db
def test_unknown_uuid_is_unchanged() -> None:
    unknown = str(uuid4())
    assert linked(unknown) == unknown


@pytest.mark.django_db
def test_text_around_a_linked_uuid_is_escaped() -> None:
    plan = make_plan({"<b>": []})
    text = linked(f"<script> {action(plan, '<b>').uuid}")
    assert "&lt;script&gt; <a" in text
    assert "<bdi>nop &lt;b&gt;</bdi></a>" in text


def test_uuid_is_shortened_in_lists() -> None:
    assert shortened("see 353c1445-9fab-47ef-a921-1b8d55048f63, or not") == "see 353c1445, or not"


@pytest.mark.parametrize(
    ("full", "short"),
    [
        ("basic-2026-11-21T12:10:29.715418", "basic 2026-11-21 12:10:29"),
        ("basic-2026-11-21T12:10:29", "basic 2026-11-21 12:10:29"),
        ("nightly-2026", "nightly-2026"),
    ],
)
def test_generated_name_is_shown_without_fractional_seconds(full: str, short: str) -> None:
    assert brief(full) == short


def test_lazy_heading_stays_safe_html() -> None:
    assert conditional_escape(head(lazy(format_html, SafeString)("<b>{}</b>", "skip"))) == "<b>skip</b>"


@pytest.mark.parametrize(("label", "text"), [("memory", "Memory"), ("vCPU", "vCPU"), ("", "")])
def test_heading_is_capitalized_except_for_units(label: str, text: str) -> None:
    assert head(label) == text


HOSTILE = "web\u202egnp.\x1b<b>"


def test_name_marks_control_characters_and_isolates_its_direction() -> None:
    mark = '<span class="control">{}</span>'
    assert name(HOSTILE) == f"<bdi>web{mark.format('U+202E')}gnp.{mark.format('␛')}&lt;b&gt;</bdi>"


def test_name_in_place_of_a_uuid_marks_control_characters_and_isolates_its_direction() -> None:
    uuid = str(uuid4())
    text = name_objects(f"Instance {uuid} is not running on compute1", {uuid: HOSTILE})
    assert text == f"Instance {name(HOSTILE)} is not running on compute1"


def test_shortened_uuid_without_a_name_is_not_isolated() -> None:
    uuid = str(uuid4())
    assert name_objects(f"Instance {uuid} not found", {}) == f"Instance {uuid[:8]} not found"


def message_about_a_server(plan: ActionPlan) -> str:
    """Store the same message as the state and as the details of an action, and return the text that pages show."""
    ran = Action.objects.get(action_plan=plan)
    message = f"Instance {ran.input_parameters['resource_id']} not found"
    Action.objects.update(state="FAILED", status_message=message)
    ActionEvent.objects.update(details=message, result="ERROR")
    return f"Server {name(ran.input_parameters['resource_name'])} not found"


@pytest.mark.django_db
def test_details_of_an_event_isolate_the_name_of_the_server(client: Client) -> None:
    plan = make_rows(HOSTILE)
    client.force_login(User.objects.create_superuser("root"))
    shown = message_about_a_server(plan)
    page = client.get(reverse("plans:detail", args=[plan.uuid])).content.decode()
    assert f'<bdi class="message">{shown}</bdi>' in page


@pytest.mark.django_db
def test_message_in_a_list_isolates_the_name_of_the_server(client: Client) -> None:
    plan = make_rows(HOSTILE)
    client.force_login(User.objects.create_superuser("root"))
    shown = message_about_a_server(plan)
    assert f'<div class="message said"><bdi>{shown}</bdi>' in client.get(reverse("actions:list")).content.decode()


def test_visible_replaces_control_characters_by_marks() -> None:
    assert visible(HOSTILE) == "webU+202Egnp.␛<b>"


def test_name_with_joiners_is_unchanged() -> None:
    assert name("a\u200cb") == "<bdi>a\u200cb</bdi>"


def test_recent_time_is_shown_in_seconds_in_each_language() -> None:
    moment = timezone.now() - timedelta(seconds=30)
    assert ago(moment).endswith(" seconds ago")
    with override("de"):
        assert re.fullmatch(r"vor 3\d Sekunden", ago(moment).replace("\xa0", " "))


# A name in Hebrew, which is written from right to left.
RIGHT_TO_LEFT = "\u05e9\u05e8\u05ea"
BLOCKS = {"main", "section", "header", "div", "p", "h1", "h2", "h3", "li", "dt", "dd", "th", "td", "summary", "pre"}
# Elements whose texts are isolated, drawn separately, or not shown.
ISOLATING = {"bdi", "option", "title", "textarea", "text", "script"}
WITHOUT_END = {"br", "hr", "img", "input", "link", "meta", "path", "rect", "line"}


class Lines(HTMLParser):
    """The texts of each block of a page, with whether they are isolated.

    The texts of a block and of the inline elements in it are on one line.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[tuple[str, bool]] = []
        self.blocks: list[list[tuple[str, bool]]] = [self.texts]
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: object) -> None:
        if tag not in WITHOUT_END:
            self.open.append(tag)
        if tag in BLOCKS or tag == "br":
            self.blocks.append([])

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass
        if tag in BLOCKS:
            self.blocks.append([])

    def handle_data(self, text: str) -> None:
        if text.strip():
            self.blocks[-1].append((" ".join(text.split()), bool(ISOLATING & set(self.open))))

    def find_unisolated(self) -> Iterator[str]:
        """Yield the lines on which a name that is written from right to left affects the texts beside it."""
        for texts in self.blocks:
            if len(texts) > 1 and any(RIGHT_TO_LEFT in text and not is_isolated for text, is_isolated in texts):
                yield " | ".join(text for text, _ in texts)


@pytest.mark.django_db
def test_name_beside_other_texts_is_isolated_on_all_pages(client: Client) -> None:
    plan = make_rows(RIGHT_TO_LEFT)
    first = Action.objects.get()
    second = Action.objects.create(action_plan=plan, action_type="migrate", input_parameters=first.input_parameters)
    ActionParent.objects.create(child=second, parent=first)
    client.force_login(User.objects.create_superuser(f"root {RIGHT_TO_LEFT}"))
    add_member(f"root {RIGHT_TO_LEFT}", PROJECT)
    for page in ("plans:start", "plans:suspend"):
        client.post(reverse(page, args=[plan.uuid]))
    paths = {reverse(name) for name in LISTS} | {
        reverse(name, kwargs={key: getattr(record, key)})
        for name, model in RECORDS.items()
        for record in model._default_manager.order_by("-pk")[:3]
        for key in ("uuid" if hasattr(model, "uuid") else "pk",)
    }
    pages = {path: client.get(path) for path in sorted(paths)}
    shown = {path: page.content.decode() for path, page in pages.items() if page.status_code == 200}
    assert len(shown) > 50
    assert [(path, line) for path, text in shown.items() for line in Lines(text).find_unisolated()] == []
