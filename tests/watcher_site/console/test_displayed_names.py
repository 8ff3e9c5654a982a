"""Names on pages: UUIDs in messages as links, generated names of audits, names with control characters."""

import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone
from django.utils.functional import lazy
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString
from django.utils.translation import override

from tests.builders import action, make_node, make_plan
from watcher_site.templatetags.console import ago, brief, head, linked, shortened
from watcher_site.templatetags.names import name, visible


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


def test_visible_replaces_control_characters_by_marks() -> None:
    assert visible(HOSTILE) == "webU+202Egnp.␛<b>"


def test_name_with_joiners_is_unchanged() -> None:
    assert name("a\u200cb") == "<bdi>a\u200cb</bdi>"


def test_recent_time_is_shown_in_seconds_in_each_language() -> None:
    moment = timezone.now() - timedelta(seconds=30)
    assert ago(moment).endswith(" seconds ago")
    with override("de"):
        assert re.fullmatch(r"vor 3\d Sekunden", ago(moment).replace("\xa0", " "))
