"""The built documentation: its pages, and the search in all pages."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import unescape
from pathlib import Path

from django.conf import settings
from django.urls import reverse
from django.utils.html import escape, format_html, strip_tags
from django.utils.safestring import SafeString, mark_safe

# Sphinx's name of the page with the contents.
INDEX = "index"
SECTION = re.compile(r'<section id="([^"]+)">\s*<h\d>(.*?)<a class="headerlink".*?</a>', re.DOTALL)
RELATIVE_LINK = re.compile(r'href="(?=\w)(?!\w+:)')
# The ends of lines and of cells in HTML, and of sentences in text.
END_OF_LINE = re.compile(r"</(?:p|li|tr|pre|dt|dd|caption|h\d)>")
BETWEEN_CELLS = re.compile(r"(?:</p>\s*)?</t[dh]>\s*(?=<t[dh])")
EXAMPLE = re.compile(r"<pre>.*?</pre>", re.DOTALL)
END_OF_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^\W\d_a-z])")
RESULTS = 30
# The length up to which further sentences are added to an excerpt, and the greatest length of one sentence.
EXCERPT = 160
LONGEST_SENTENCE = 2 * EXCERPT


@dataclass(frozen=True)
class Section:
    """A section of a page, without nested sections. The lines of its text are the title and the blocks of HTML."""

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


def find_sections(text: str) -> list[tuple[Section, SafeString]]:
    """Return the sections that contain all words of a text, best first, each with an excerpt.

    A word in the title of a section counts for more than any number of occurrences in its text.
    """
    words = text.lower().split()
    found = [section for section in load_sections() if words and all(word in section.text.lower() for word in words)]
    found.sort(key=lambda section: rank_section(section, words), reverse=True)
    return [(section, mark_words(excerpt(section, words), words)) for section in found[:RESULTS]]


def rank_section(section: Section, words: list[str]) -> tuple[int, int]:
    title, text = section.title.lower(), section.text.lower()
    return sum(word in title for word in words), sum(text.count(word) for word in words)


def excerpt(section: Section, words: Sequence[str]) -> str:
    """Return sentences of a section that contain its first occurrences of words, or else its first sentence.

    A sentence with several words is preferred to several sentences.
    """
    _title, *lines = section.text.splitlines()
    sentences = [sentence for line in lines for sentence in END_OF_SENTENCE.split(line)]
    missing, chosen = set(words), set[int]()
    while sentences and sum(len(sentences[place]) for place in chosen) < EXCERPT:
        numbers = [sum(word in sentence.lower() for word in missing) for sentence in sentences]
        best = numbers.index(max(numbers))
        if chosen and not numbers[best]:
            break
        chosen.add(best)
        missing = {word for word in missing if word not in sentences[best].lower()}
    parts = [(" " if place - 1 in chosen else " … ") + cut_around(sentences[place], words) for place in sorted(chosen)]
    return "".join(parts).removeprefix(" … ")


def cut_around(sentence: str, words: Sequence[str]) -> str:
    """Return a sentence, of which a part around the first of the words is returned if it is too long."""
    if len(sentence) <= LONGEST_SENTENCE:
        return sentence
    places = [place for word in words if (place := sentence.lower().find(word)) >= 0]
    begin = max(0, min(places, default=0) - EXCERPT // 2)
    part = sentence[begin : begin + LONGEST_SENTENCE]
    part = f"… {part.split(' ', 1)[-1]}" if begin else part
    return f"{part.rsplit(' ', 1)[0]} …" if begin + LONGEST_SENTENCE < len(sentence) else part


def mark_words(text: str, words: Sequence[str]) -> SafeString:
    """Return a text as HTML in which the words are marked."""
    pattern = re.compile("|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)), re.IGNORECASE)
    parts, end = [], 0
    for match in pattern.finditer(text):
        parts += [escape(text[end : match.start()]), format_html("<mark>{}</mark>", match[0])]
        end = match.end()
    return mark_safe("".join([*parts, escape(text[end:])]))  # noqa: S308 (each part was escaped)


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
            page_title, title = (unescape(strip_tags(html)) for html in (page["title"], title))
            sections.append(Section(file.stem, page_title, anchor, title, f"{title}\n{text_of(body)}"))
    return tuple(sections)


def text_of(html: str) -> str:
    """Return the text of HTML, with one line for each paragraph, item, row and line of examples."""
    html = EXAMPLE.sub(lambda example: example[0].replace("\n", "</pre>"), html)
    html = BETWEEN_CELLS.sub(" – ", " ".join(html.split()))  # noqa: RUF001 (a dash between cells)
    texts = (" ".join(unescape(strip_tags(line)).split()) for line in END_OF_LINE.split(html))
    return "\n".join(filter(None, texts))
