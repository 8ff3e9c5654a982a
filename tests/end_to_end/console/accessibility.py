"""axe-core, which examines the page that a browser shows."""

from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

RUN = """(options) => axe.run(document, options).then(({ violations }) => violations.flatMap(
  ({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 150)}: ${failureSummary}`)))"""


def find_problems(page: Page, options: dict[str, Any]) -> list[str]:
    """Return the problems that axe-core finds with these options, and load it before if need be."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    return page.evaluate(RUN, {"resultTypes": ["violations"], "selectors": False, **options})
