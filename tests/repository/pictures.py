"""The pictures of the console in docs/pictures/, made by ``python -m tests.repository.pictures`` (``make pictures``).

The script starts the site with its demonstration on a new SQLite database, performs the first steps of the tutorial
in Chromium, and saves a picture of each page. A second site has the settings of the other pictures.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

from PIL import Image
from playwright.sync_api import Locator, Page, expect

from tests.end_to_end.console.browser import browser_page
from tests.waiting import wait_for
from tests.watcher_site.site_process import KEY, free_port_number

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "pictures"
PASSWORD = "correct-horse-battery"
WIDTH = 1200
# The pictures with their heights: the part of the page that the text describes.
PICTURES = {
    "overview": 760,
    "search": 560,
    "documentation": 800,
    "skip-dialog": 800,
    "plan": 1290,
    "running-plan": 800,
    "timeline": 760,
    "approval": 620,
    "mail-subscription": 640,
    "subscription": 560,
}
# The language, colours and time zone must not depend on the machine.
CONTEXT = {
    "color_scheme": "light",
    "reduced_motion": "reduce",
    "locale": "en",
    "timezone_id": "UTC",
}
# Long enough to photograph running actions, also if the page is updated late.
SECONDS_PER_MIGRATION = 6
# In seconds. On a busy machine, processes of the site may not run for minutes.
TIMEOUT = 600
# The settings of the pictures of optional parts. No message is sent during the pictures.
OPTIONS = {
    "WATCHER_PLAN_APPROVAL": "true",
    "EMAIL_URL": "smtp://mail.example.org:25",
    "WATCHER_EMAIL_FROM": "Watcher <watcher@example.org>",
}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    # The others stay until they are replaced, because `make docs` requires them.
    for picture in FOLDER.glob("*.png"):
        if picture.stem not in PICTURES:
            picture.unlink()
    with opened_page() as page:
        take_pictures(page)
    with opened_page(**OPTIONS) as page:
        take_pictures_of_options(page)


@contextmanager
def opened_page(**settings: str) -> Iterator[Page]:
    """Open the browser for a new site with further settings."""
    with started_site(**settings) as address, browser_page(base_url=address, **CONTEXT) as page:
        page.set_default_timeout(TIMEOUT * 1000)
        expect.set_options(timeout=TIMEOUT * 1000)
        yield page


@contextmanager
def started_site(**settings: str) -> Iterator[str]:
    """Start the site as ``make run`` does, with further settings, and return its address when it responds."""
    port = free_port_number()
    with TemporaryDirectory() as folder:
        environment = {
            "PATH": os.environ["PATH"],
            "SECRET_KEY": KEY,
            "PORT": str(port),
            "DATABASE_URL": f"sqlite:///{folder}/watcher.sqlite3",
            "WATCHER_ADMIN_PASSWORD": PASSWORD,
            "WATCHER_EMBEDDED_CLOUD_SECONDS": str(SECONDS_PER_MIGRATION),
            "WATCHER_HOST": "control-1",
            "WATCHER_HTTPS": "false",
            "WATCHER_LOG_LEVEL": "WARNING",
            **settings,
        }
        command = [sys.executable, "-m", "watcher_site.processes.start"]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for(lambda: process.poll() is not None or responds(address), TIMEOUT, interval=0.5)
            yield address
        finally:
            process.terminate()
            process.wait(TIMEOUT)


def responds(address: str) -> bool:
    try:
        with urlopen(f"{address}/healthz") as response:  # noqa: S310 (our own address)
            return bool(response.status == 200)
    except OSError:
        return False


def save(page: Page, name: str) -> None:
    """Save the window as a PNG with 256 colours, which is a third of the size of Chromium's."""
    page.set_viewport_size({"width": WIDTH, "height": PICTURES[name]})
    page.evaluate("scrollTo(0, 0)")
    image = Image.open(BytesIO(page.screenshot(animations="disabled", caret="hide")))
    reduced = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    reduced.save(FOLDER / f"{name}.png", optimize=True)


def take_pictures(page: Page) -> None:
    """Perform the steps of docs/tutorial.md, "Skip an action and run the plan"."""
    log_in(page)
    save(page, "overview")

    page.goto("/console/search/?q=compute-03")
    save(page, "search")
    page.goto("/docs/")
    save(page, "documentation")

    open_plan(page)
    row(page, "ci-runner-1").get_by_role("button", name="Skip migrate").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("Not before Sunday")
    save(page, "skip-dialog")
    dialog.get_by_role("button", name="Skip", exact=True).click()
    expect(row(page, "ci-runner-1")).to_contain_text("Not before Sunday")
    save(page, "plan")

    page.get_by_role("link", name="Start…", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Start").click()
    state = page.get_by_role("heading", level=1)
    expect(state).to_contain_text("ONGOING")
    # Any actions, because the page may be updated too late to show certain ones while they run.
    migrations = page.get_by_role("row").filter(has_text="migrate")
    for shown in ("SUCCEEDED", "ONGOING"):
        expect(migrations.filter(has_text=shown).first).to_be_visible()
    save(page, "running-plan")

    expect(state).to_contain_text("SUCCEEDED")
    page.get_by_role("link", name="Timeline").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Timeline")
    save(page, "timeline")


def take_pictures_of_options(page: Page) -> None:
    log_in(page)
    open_plan(page)
    save(page, "approval")

    page.goto("/console/notifications/new/?kind=mail")
    page.get_by_label("Name").fill("operators")
    page.get_by_label("Addresses").fill("operators@example.org\nrosa@example.org")
    page.get_by_label("Events").fill("action_plan.* *.error")
    save(page, "mail-subscription")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("operators")
    save(page, "subscription")


def log_in(page: Page) -> None:
    page.goto("/console/login/")
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Overview")


def open_plan(page: Page) -> None:
    page.goto("/console/plans/")
    page.get_by_role("link", name=re.compile("compute-03")).first.click()


def row(page: Page, server: str) -> Locator:
    # Cells with the actions that an action waits for may name the server, too.
    return page.get_by_role("row").filter(has=page.locator("td.resource", has_text=re.compile(rf"^\s*{server}\b")))


if __name__ == "__main__":
    main()
