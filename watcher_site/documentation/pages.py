"""The built documentation: its pages, and the search in all pages."""

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from html import unescape
from pathlib import Path

from django.conf import settings
from django.urls import reverse
from django.utils.html import strip_tags

# Sphinx's name of the page with the contents.
INDEX = "index"
SECTION = re.compile(r'<section id="([^"]+)">\s*<h\d>(.*?)<a class="headerlink".*?</a>', re.DOTALL)
RELATIVE_LINK = re.compile(r'href="(?=\w)(?!\w+:)')
RESULTS = 30
EXCERPT = 160


@dataclass(frozen=True)
class Section:
    """A section of a page with its text, without nested sections."""

    page: str
    page_title: str
    anchor: str
    title: str
    text: str

    @property
    def address(self) -> str:
        return f"{self.page}/#{self.anchor}" if self.page != INDEX else f"#{self.anchor}"


def is_built() -> bool:
    return page_file(INDEX).is_file()


def page_file(name: str) -> Path:
    return Path(settings.DOCUMENTATION_FOLDER) / f"{name}.fjson"


def load_page(name: str) -> dict[str, str] | None:
    """Return the title, body and table of contents of a page, or None if there is no such page."""
    file = page_file(name)
    return parse_page(file, file.stat().st_mtime) if file.is_file() else None


@lru_cache(maxsize=64)
def parse_page(file: Path, changed: float) -> dict[str, str]:
    page = json.loads(file.read_text())
    return {"title": unescape(strip_tags(page["title"])), "body": page["body"], "toc": page["toc"]}


def load_contents() -> str:
    """Return the links to all pages, which work on every page."""
    index = load_page(INDEX)
    return RELATIVE_LINK.sub(f'href="{reverse("docs:index")}', index["body"]) if index else ""


def find_sections(text: str) -> list[tuple[Section, str]]:
    """Return the sections that contain all words of a text, best first, each with an excerpt.

    A word in the title of a section counts for more than any number of occurrences in its text.
    """
    words = text.lower().split()
    found = [section for section in load_sections() if words and all(word in section.text.lower() for word in words)]
    found.sort(key=lambda section: rank_section(section, words), reverse=True)
    return [(section, excerpt(section.text, words[0])) for section in found[:RESULTS]]


def rank_section(section: Section, words: list[str]) -> tuple[int, int]:
    title, text = section.title.lower(), section.text.lower()
    return sum(word in title for word in words), sum(text.count(word) for word in words)


def excerpt(text: str, word: str) -> str:
    """Return the part of a text around the first occurrence of a word, cut between words."""
    begin = max(0, text.lower().find(word) - EXCERPT // 2)
    part = " ".join(text[begin : begin + 2 * EXCERPT].split())
    return f"… {part.split(' ', 1)[-1]}" if begin else part


def load_sections() -> tuple[Section, ...]:
    files = tuple(sorted(Path(settings.DOCUMENTATION_FOLDER).glob("*.fjson")))
    return parse_sections(files, max((file.stat().st_mtime for file in files), default=0))


@lru_cache(maxsize=1)
def parse_sections(files: tuple[Path, ...], changed: float) -> tuple[Section, ...]:
    sections = []
    for file in files:
        page = json.loads(file.read_text())
        _, *parts = SECTION.split(page.get("body", ""))
        for anchor, title, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            title, body = (unescape(strip_tags(html)) for html in (title, body))
            sections.append(Section(file.stem, unescape(strip_tags(page["title"])), anchor, title, f"{title} {body}"))
    return tuple(sections)
