"""Names that people read: UUIDs in messages as links, audits that were named after the time, hostile names."""

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
def test_a_uuid_in_a_message_leads_to_what_it_names() -> None:
    plan = make_plan({"a": []})
    text = linked(f"superseded by {plan.uuid}: {action(plan, 'a').uuid}.")
    named = f'<bdi>nop</bdi> <span class="uuid">{str(plan.uuid)[:8]}</span>'
    assert f'<a href="/console/plans/{plan.uuid}/" title="{plan.uuid}">{named}</a>' in text
    assert f'<a href="/console/actions/{action(plan, "a").uuid}/"' in text
    assert "><bdi>nop a</bdi></a>." in text


@pytest.mark.django_db
def test_a_node_is_called_by_its_host_name() -> None:
    assert linked(str(make_node("compute1").uuid)).endswith("><bdi>compute1</bdi></a>")


@pytest.mark.django_db
def test_what_is_not_there_stays_as_it_is() -> None:
    unknown = str(uuid4())
    assert linked(unknown) == unknown


@pytest.mark.django_db
def test_what_was_written_around_it_is_never_run() -> None:
    plan = make_plan({"<b>": []})
    text = linked(f"<script> {action(plan, '<b>').uuid}")
    assert "&lt;script&gt; <a" in text
    assert "<bdi>nop &lt;b&gt;</bdi></a>" in text


def test_in_lists_the_beginning_of_a_uuid_stands_for_it() -> None:
    assert shortened("see 353c1445-9fab-47ef-a921-1b8d55048f63, or not") == "see 353c1445, or not"


@pytest.mark.parametrize(
    ("full", "short"),
    [
        ("basic-2026-11-21T12:10:29.715418", "basic 2026-11-21 12:10:29"),
        ("basic-2026-11-21T12:10:29", "basic 2026-11-21 12:10:29"),
        ("nightly-2026", "nightly-2026"),
    ],
)
def test_a_name_that_was_made_up_leaves_the_parts_of_a_second_out(full: str, short: str) -> None:
    assert brief(full) == short


def test_a_lazy_head_stays_html() -> None:
    assert conditional_escape(head(lazy(format_html, SafeString)("<b>{}</b>", "skip"))) == "<b>skip</b>"


@pytest.mark.parametrize(("label", "text"), [("memory", "Memory"), ("vCPU", "vCPU"), ("", "")])
def test_a_head_begins_with_a_capital_but_for_units(label: str, text: str) -> None:
    assert head(label) == text


HOSTILE = "web\u202egnp.\x1b<b>"


def test_a_name_with_control_characters_shows_them_and_keeps_its_direction_to_itself() -> None:
    mark = '<span class="control">{}</span>'
    assert name(HOSTILE) == f"<bdi>web{mark.format('U+202E')}gnp.{mark.format('␛')}&lt;b&gt;</bdi>"


def test_in_a_title_control_characters_are_replaced_by_their_marks() -> None:
    assert visible(HOSTILE) == "webU+202Egnp.␛<b>"


def test_a_name_in_a_script_that_needs_joiners_stays_as_it_is() -> None:
    assert name("a\u200cb") == "<bdi>a\u200cb</bdi>"


def test_a_moment_less_than_a_minute_ago_is_shown_in_seconds_in_each_language() -> None:
    moment = timezone.now() - timedelta(seconds=30)
    assert ago(moment).endswith(" seconds ago")
    with override("de"):
        assert re.fullmatch(r"vor 3\d Sekunden", ago(moment).replace("\xa0", " "))
