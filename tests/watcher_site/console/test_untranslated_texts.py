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

pytestmark = pytest.mark.django_db
# The elements whose texts are the site's own; others also have names, messages and words of the API.
CHECKED = {"label", "legend", "h2", "h3", "th", "button", "summary"}
WITHOUT_TEXT = {"area", "br", "hr", "img", "input", "link", "meta"}
# Names of the demonstration and of plug-ins, words of the API, and units.
NAMES = re.compile(
    r"(, )?[a-z_]+|[A-Z]+(_[A-Z]+)+|senlin\.[a-z_.0-9-]+|large-memory|hall-.|\(?UTC\)?|vCPU|CSV|· \d+ / \d+ vCPU .* GB"
)
WORD = re.compile(r"[^\W\d_]{3}")
DOWNLOADS = {"history:export", "logout"}


class Texts(HTMLParser):
    """The texts of a page that are not within brackets."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.path: list[str] = []
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in WITHOUT_TEXT:
            self.path.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.path and self.path.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if CHECKED & set(self.path):
            self.found += [part.strip() for part in re.split("⟦[^⟧]*⟧", data)]


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
