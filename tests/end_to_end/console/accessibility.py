"""axe-core, which examines the page in a browser."""

from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

RUN = """(options) => axe.run(document, options).then(({ violations }) => violations.flatMap(
  ({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 150)}: ${failureSummary}`)))"""


def find_problems(page: Page, options: dict[str, Any]) -> list[str]:
    """Load axe-core into the page unless it is loaded, and return the problems that it finds with the options."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    return page.evaluate(RUN, {"resultTypes": ["violations"], "selectors": False, **options})
