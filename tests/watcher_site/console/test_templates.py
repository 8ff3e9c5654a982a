"""Rules for every template of the console."""

import re
from pathlib import Path

import pytest
from django.template.loader import get_template
from django.test import RequestFactory

TEMPLATES = Path(__file__).parents[3] / "templates"
PAGES = sorted(TEMPLATES.rglob("*.html"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TEMPLATES)))
def test_a_template_has_nothing_that_the_content_security_policy_forbids(page: Path) -> None:
    text = page.read_text()
    assert re.findall(r"\sstyle=|\son[a-z]+=|javascript:|https?://", text) == []
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style", text) == []


def test_the_page_of_an_error_of_ours_needs_no_database(client: object) -> None:
    """No ``db`` fixture: a query would fail this test."""
    text = get_template("500.html").render({}, RequestFactory().get("/console/"))
    assert "Internal error" in text
