"""A real browser: the system's Chromium, without a window."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, expect, sync_playwright

from tests.waiting import PATIENCE

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def browser_page(**context: object) -> Iterator[Page]:
    """Open an empty page; the errors in its console are collected in ``page.complaints``."""
    path = os.environ.get("WATCHER_TEST_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        page = browser.new_context(**context).new_page()
        page.set_default_timeout(PATIENCE * 1000)
        expect.set_options(timeout=PATIENCE * 1000)
        page.complaints = []
        page.on("console", lambda line: line.type == "error" and page.complaints.append(line.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        yield page
        browser.close()
