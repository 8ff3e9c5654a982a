"""Rules for every template of the console."""

import re
from pathlib import Path

import pytest
from django.template.loader import get_template
from django.test import Client, RequestFactory

TEMPLATES = Path(__file__).parents[3] / "templates"
PAGES = sorted(TEMPLATES.rglob("*.html"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TEMPLATES)))
def test_template_obeys_the_content_security_policy(page: Path) -> None:
    text = page.read_text()
    assert re.findall(r"\sstyle=|\son[a-z]+=|javascript:|https?://", text) == []
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style", text) == []


def test_error_page_requires_no_database(client: object) -> None:
    """No ``db`` fixture: a query would fail this test."""
    text = get_template("500.html").render({}, RequestFactory().get("/console/"))
    assert "Internal error" in text


@pytest.mark.parametrize(
    ("accepted", "kind"),
    [
        ("text/html,application/xhtml+xml,*/*;q=0.8", "text/html"),
        ("application/json", "application/json"),
        ("*/*", "application/json"),
    ],
)
def test_unknown_path_is_html_only_for_browsers(client: Client, db: None, accepted: str, kind: str) -> None:
    answer = client.get("/no/such/path", headers={"accept": accepted})
    assert answer.status_code == 404
    assert answer["Content-Type"].startswith(kind)
