"""A pseudo-locale that puts each translatable text in brackets shows the texts of pages that are not translatable."""

import re
from collections import deque
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.urls import resolve, reverse
from django.utils import translation
from pytest_django import Settings

from actions.models import Action
from actions.operations.skipping import skip_action
from plans.models import ActionPlan
from plans.models.refusals import PlanOperation, plan_conflict
from tests.actions.exclusions.builders import make_exclusion
from tests.builders import action, make_plan
from tests.plans.inline import run_waiting
from watcher_site.history.recording import record_refusal
from watcher_site.request_context import CallingContext, on_behalf_of

pytestmark = [pytest.mark.any_database, pytest.mark.django_db]
# The elements whose texts are the site's own; others also have names, messages and words of the API.
CHECKED = {"label", "legend", "h2", "h3", "th", "button", "summary"}
# The classes of elements with stored messages.
MESSAGES = {"message", "status-message", "first-lines"}
WITHOUT_TEXT = {"area", "br", "hr", "img", "input", "link", "meta"}
# Names of the demonstration and of plug-ins, words of the API, and units.
NAMES = re.compile(
    r"(, )?[a-z_]+|[A-Z]+(_[A-Z]+)+|senlin\.[a-z_.0-9-]+|large-memory|hall-.|\(?UTC\)?|vCPU|CSV|· \d+ / \d+ vCPU .* GB"
)
WORD = re.compile(r"[^\W\d_]{3}")
DOWNLOADS = {"history:export", "logout"}


class Texts(HTMLParser):
    """The texts of a page that are not within brackets, and its messages without the parts that are."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.path: list[str] = []
        self.messages: list[str] = []
        self.message_level = 0
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in WITHOUT_TEXT:
            return
        self.path.append(tag)
        is_message = tag == "q" or MESSAGES & set((dict(attrs).get("class") or "").split())
        if is_message and not self.message_level:
            self.message_level = len(self.path)
            self.messages.append("")

    def handle_endtag(self, tag: str) -> None:
        while self.path and self.path.pop() != tag:
            pass
        if len(self.path) < self.message_level:
            self.message_level = 0
            self.messages[-1] = without_brackets(self.messages[-1])

    def handle_data(self, data: str) -> None:
        if self.message_level:
            self.messages[-1] += data
        if CHECKED & set(self.path):
            self.found += [part.strip() for part in re.split("⟦[^⟧]*⟧", data)]


def without_brackets(text: str) -> str:
    """Return a text without the parts in brackets, which may contain others."""
    while "⟦" in text and (shorter := re.sub("⟦[^⟦⟧]*⟧", "", text)) != text:
        text = shorter
    return " ".join(text.split())


@pytest.fixture
def brackets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put each text in brackets in place of its translation, in which brackets around values are removed."""
    plain = str.maketrans("", "", "⟦⟧")

    def mark(text: str) -> str:
        return f"⟦{text.translate(plain)}⟧" if text else ""

    functions = {
        "gettext": mark,
        "pgettext": lambda _context, text: mark(text),
        "ngettext": lambda one, many, number: mark(one if number == 1 else many),
        "npgettext": lambda _context, one, many, number: mark(one if number == 1 else many),
    }
    for name, function in functions.items():
        monkeypatch.setattr(translation._trans, name, function, raising=False)


def pages(client: Client) -> Iterator[tuple[str, str]]:
    """Yield a page of each kind that links lead to, with its HTML."""
    kinds, paths = set(DOWNLOADS), deque([reverse("home")])
    while paths:
        response = client.get(path := paths.popleft())
        if response.status_code != 200:
            continue
        html = response.content.decode()
        yield path, html
        for link in re.findall(r'href="(/console/[^"#?]*)', html):
            if (kind := resolve(link).view_name) not in kinds:
                kinds.add(kind)
                paths.append(link)


def test_all_labels_and_headings_of_the_console_are_translatable(brackets: None, client: Client) -> None:
    call_command("load_demonstration", verbosity=0)
    client.force_login(User.objects.create_superuser("root"))
    shown = dict(pages(client))
    found = {
        path: texts
        for path, html in shown.items()
        if (texts := [text for text in Texts(html).found if WORD.search(text) and not NAMES.fullmatch(text)])
    }
    assert len(shown) > 60
    assert found == {}


@pytest.mark.parametrize("name", ["login", "login-keystone"])
def test_all_labels_of_the_login_pages_are_translatable(
    name: str, brackets: None, client: Client, settings: Settings
) -> None:
    settings.KEYSTONE_URL = "https://keystone.example.org/v3"
    found = Texts(client.get(reverse(name)).content.decode()).found
    assert [text for text in found if WORD.search(text)] == []


def make_messages() -> list[ActionPlan]:
    """Return a failed and a cancelled plan, with the messages, events and history that users see most."""
    make_exclusion("backup", action_types=["sleep"], reason="night")
    failed, cancelled = make_plan({"a": [], "b": ["a"], "c": [], "d": []}), make_plan({"a": []})
    failed.actions.filter(pk=action(failed, "a").pk).update(input_parameters={"message": "a", "fail_execute": True})
    failed.actions.filter(pk=action(failed, "d").pk).update(input_parameters={"duration": 1}, action_type="sleep")
    failed.choose_on_failure("stop")
    with on_behalf_of(lambda: CallingContext(user="rosa")):
        skip_action(action(failed, "c").uuid, "rosa", "because")
        failed.refresh_from_db()
        failed.launch(CallingContext(user="rosa"))
        cancelled.abandon("rosa")
        record_refusal("action_plan.cancel", cancelled, str(plan_conflict(PlanOperation.CANCEL, cancelled)))
    run_waiting()
    return [failed, cancelled]


def test_stored_messages_are_translatable(brackets: None, client: Client) -> None:
    plans = make_messages()
    client.force_login(User.objects.create_superuser("root"))
    objects = [("plans:detail", plan) for plan in plans]
    objects += [("actions:detail", one) for one in Action.objects.filter(action_plan__in=plans)]
    paths = [reverse(name) for name in ("plans:list", "actions:list", "history:list")]
    paths += [reverse(name, args=[one.uuid]) for name, one in objects]
    found = {path: Texts(client.get(path).content.decode()).messages for path in paths}
    assert sum(map(len, found.values())) > 30
    untranslated = {re.sub(r"because|rosa|sleep", "", text) for texts in found.values() for text in texts}
    assert {text for text in untranslated if WORD.search(text)} == set()
