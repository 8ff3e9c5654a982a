"""The documentation under /docs/: its pages, pictures, downloads and search, and the links of the console to it."""

import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from tests.repository.test_documentation import ROOT, headings_of, slug
from watcher_site.documentation.pages import find_sections

pytestmark = [pytest.mark.any_database, pytest.mark.django_db]
SECTION = (
    '<section id="{anchor}"><h1>{title}<a class="headerlink" href="#{anchor}">¶</a></h1><p>{text}</p>{more}</section>'
)
RELATIVE_LINK = re.compile(r"""(?:href|src)="(?!\w+:|[/#])([^"]+)\"""")
HELP_LINK = re.compile(r"""help_link ["']([\w-]+)(?:#([\w-]+))?["']|help_page = "([\w-]+)(?:#([\w-]+))?\"""")


def write_page(folder: Path, name: str, title: str, body: str) -> None:
    (folder / f"{name}.fjson").write_text(json.dumps({"title": title, "body": body, "toc": "<ul></ul>"}))


@pytest.fixture
def built(settings: Settings, tmp_path: Path) -> Path:
    settings.DOCUMENTATION_FOLDER = tmp_path
    quotas = SECTION.format(anchor="quotas", title="Quotas", text="How many plans a project has.", more="")
    operating = SECTION.format(anchor="operating", title="Operating", text="Plans &amp; quotas.", more=quotas)
    write_page(tmp_path, "index", "Documentation", '<a href="operating/">Operating</a>')
    write_page(tmp_path, "operating", "Operating", operating)
    (tmp_path / "_images").mkdir()
    (tmp_path / "_images" / "plan.png").write_bytes(b"PNG")
    (tmp_path / "_downloads" / "c0ffee").mkdir(parents=True)
    (tmp_path / "_downloads" / "c0ffee" / "alerts.yml").write_text("groups: []\n")
    return tmp_path


def build(source: Path, folder: Path) -> Path:
    """Build pages with Sphinx, as ``make docs`` does."""
    options = ["--quiet", "--fail-on-warning", "--builder", "json"]
    subprocess.run([sys.executable, "-m", "sphinx", *options, str(source), str(folder)], check=True)
    return folder


@pytest.fixture
def reader(client: Client, db: None) -> Client:
    client.force_login(User.objects.create_user("rosa"))
    return client


def text(response: Any) -> str:
    return str(response.content.decode())


def test_page_has_the_layout_of_the_console(reader: Client, built: Path) -> None:
    page = text(reader.get("/docs/operating/"))
    assert "How many plans a project has." in page
    assert 'href="/console/"' in page


def test_page_links_to_all_other_pages(reader: Client, built: Path) -> None:
    assert 'href="/docs/operating/">Operating</a>' in text(reader.get("/docs/operating/"))


@pytest.mark.parametrize(
    "path",
    [
        "/docs/",
        "/docs/operating/",
        "/docs/search/?q=plans",
        "/docs/_images/plan.png",
        "/docs/_downloads/c0ffee/alerts.yml",
    ],
)
def test_documentation_requires_a_login(client: Client, built: Path, path: str) -> None:
    assert client.get(path).status_code == 302


@pytest.mark.parametrize(
    "path",
    [
        "/docs/missing/",
        "/docs/_images/missing.png",
        "/docs/_images/..%2Findex.fjson",
        "/docs/_images/plan%00.png",
        "/docs/_downloads/c0ffee/missing.yml",
        "/docs/_downloads/..%2Findex.fjson",
        "/docs/_downloads/%2Fetc/passwd",
        "/docs/_downloads/c0ffee",
    ],
)
def test_missing_page_or_file_is_404(reader: Client, built: Path, path: str) -> None:
    assert reader.get(path).status_code == 404


def test_picture_is_served(reader: Client, built: Path) -> None:
    response: Any = reader.get("/docs/_images/plan.png")
    assert b"".join(response.streaming_content) == b"PNG"


def test_download_is_served_as_an_attachment(reader: Client, built: Path) -> None:
    response: Any = reader.get("/docs/_downloads/c0ffee/alerts.yml")
    assert response["Content-Disposition"] == 'attachment; filename="alerts.yml"'
    assert b"".join(response.streaming_content) == b"groups: []\n"


def test_all_relative_links_of_the_documentation_work(reader: Client, settings: Settings, tmp_path: Path) -> None:
    settings.DOCUMENTATION_FOLDER = build(ROOT / "docs", tmp_path)
    pages = ["/docs/", *(f"/docs/{file.stem}/" for file in tmp_path.glob("*.fjson") if file.stem != "index")]
    found = [urljoin(page, unescape(link)) for page in pages for link in RELATIVE_LINK.findall(text(reader.get(page)))]
    links = sorted({urldefrag(link).url for link in found})
    assert {link.rsplit(".")[-1] for link in links} >= {"svg", "png", "yml", "json"}
    assert [link for link in links if reader.get(link).status_code != 200] == []


def test_page_shows_pictures_built_by_sphinx(reader: Client, settings: Settings, tmp_path: Path) -> None:
    source = tmp_path / "docs"
    (source / "pictures").mkdir(parents=True)
    (source / "conf.py").write_text('extensions = ["myst_parser"]\n')
    (source / "index.md").write_text("# Pages\n\n```{toctree}\ntutorial\n```\n")
    (source / "tutorial.md").write_text("# Tutorial\n\n![A plan](pictures/plan.png)\n")
    (source / "pictures" / "plan.png").write_bytes(b"PNG")
    settings.DOCUMENTATION_FOLDER = build(source, tmp_path / "built")
    page = "/docs/tutorial/"
    (address,) = re.findall(r'<img alt="A plan" src="([^"]+)"', text(reader.get(page)))
    response: Any = reader.get(urljoin(page, address))
    assert (response.status_code, response["Content-Type"]) == (200, "image/png")
    assert b"".join(response.streaming_content) == b"PNG"


def test_missing_build_is_reported_with_the_command(reader: Client, settings: Settings, tmp_path: Path) -> None:
    settings.DOCUMENTATION_FOLDER = tmp_path / "missing"
    assert "make docs" in text(reader.get("/docs/operating/"))


def test_search_finds_sections_with_all_words(reader: Client, built: Path) -> None:
    page = text(reader.get("/docs/search/", {"q": "PLANS project"}))
    assert 'href="/docs/operating/#quotas"' in page
    assert 'href="/docs/operating/#operating"' not in page


def test_search_ranks_matches_in_titles_first(reader: Client, built: Path) -> None:
    page = text(reader.get("/docs/search/", {"q": "quotas"}))
    assert page.index("/docs/operating/#quotas") < page.index("/docs/operating/#operating")


def find_excerpt(folder: Path, html: str, words: str) -> str:
    write_page(folder, "page", "Page", SECTION.format(anchor="first", title="First", text="", more=html))
    ((_section, excerpt),) = find_sections(words)
    return excerpt


@pytest.mark.parametrize(
    ("html", "words", "expected"),
    [
        (
            "<p>An applier runs plans. A worker runs actions from a queue. It needs RabbitMQ.</p>",
            "queue worker",
            "A <mark>worker</mark> runs actions from a <mark>queue</mark>.",
        ),
        (
            "<p>A worker runs actions. It is a process. It reads a queue.</p>",
            "queue worker",
            "A <mark>worker</mark> runs actions. … It reads a <mark>queue</mark>.",
        ),
        (
            "<table><tr><th>name</th></tr><tr><td><p>QUEUE</p></td>\n<td><p>The queue.</p></td></tr></table>",
            "queue",
            "<mark>QUEUE</mark> \N{EN DASH} The <mark>queue</mark>.",
        ),
        ("<pre>first\nget a &lt;queue&gt;\nlast</pre>", "queue", "get a &lt;<mark>queue</mark>&gt;"),
        ("<p>It is empty. It is full.</p>", "first", "It is empty."),
    ],
)
def test_excerpt_has_the_sentences_with_the_words(built: Path, html: str, words: str, expected: str) -> None:
    assert find_excerpt(built, html, words) == expected


def test_excerpt_of_a_long_sentence_is_cut_between_words(built: Path) -> None:
    excerpt = find_excerpt(built, f"<p>{'before ' * 100}queue {'after ' * 100}</p>", "queue")
    assert re.fullmatch("… (before )+<mark>queue</mark> (after )+…", excerpt)
    assert len(excerpt) < 350


def test_search_reports_that_no_section_matches(reader: Client, built: Path) -> None:
    assert "No section contains all words" in text(reader.get("/docs/search/", {"q": "<b>zebra"}))


def test_help_links_of_the_console_lead_to_existing_pages_and_headings() -> None:
    sources = [
        *ROOT.glob("templates/**/*.html"),
        *(p for app in ("watcher_site", "cluster", "actions", "plans", "audits") for p in (ROOT / app).rglob("*.py")),
    ]
    found = [(a or c, b or d) for source in sources for a, b, c, d in HELP_LINK.findall(source.read_text())]
    pages = {name: {slug(heading) for heading in headings_of(ROOT / "docs" / f"{name}.md")} for name, _ in found}
    assert [link for link in found if link[1] and link[1] not in pages[link[0]]] == []
