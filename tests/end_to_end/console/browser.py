"""A real browser: the system's Chromium, without a window."""

import atexit
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from playwright.sync_api import Browser, Page, expect, sync_playwright

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


@cache
def running_browser() -> Browser:
    """Return the browser of this process, which is started once: its start takes longer than most tests."""
    # The event loop of Playwright runs in this thread from now on. Django would reject queries there.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    playwright = sync_playwright().start()
    atexit.register(playwright.stop)
    path = os.environ.get("WATCHER_TEST_CHROMIUM") or shutil.which("chromium")
    expect.set_options(timeout=PATIENCE * 1000)
    return playwright.chromium.launch(executable_path=path, args=ARGUMENTS)


@contextmanager
def browser_page(**options: object) -> Iterator[Page]:
    """Open an empty page in a session of its own; the errors in its console are collected in ``page.complaints``."""
    with running_browser().new_context(**options) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        page.complaints = []
        page.on("console", lambda line: line.type == "error" and page.complaints.append(line.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        yield page
