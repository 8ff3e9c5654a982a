"""The pictures of the documentation are made by scripts, used by pages, and described for readers without them."""

import re
from pathlib import Path

import pytest

from tests.repository.pictures import FOLDER, PICTURES
from tests.repository.state_diagrams import BLOCK, PAGE, picture_of
from tests.repository.test_documentation import PAGES, ROOT

IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
BYTES = 100_000


def pictures_of(page: Path) -> dict[Path, str]:
    """Return the pictures that a page shows, with their alternative texts."""
    return {(page.parent / target).resolve(): text for text, target in IMAGE.findall(page.read_text())}


def test_every_picture_is_made_by_a_script() -> None:
    endings = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg")
    found = {path for path in (ROOT / "docs").rglob("*") if path.suffix in endings}
    diagrams = {picture_of(block[1]) for block in BLOCK.finditer(PAGE.read_text())}
    assert found == {FOLDER / f"{name}.png" for name in PICTURES} | diagrams


def test_every_picture_of_the_console_is_used_by_a_page() -> None:
    shown = {picture for page in PAGES for picture in pictures_of(page)}
    assert shown == {FOLDER / f"{name}.png" for name in PICTURES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pictures_of_a_page_have_alternative_text(page: Path) -> None:
    assert [picture.name for picture, text in pictures_of(page).items() if len(text.split()) < 3] == []


@pytest.mark.parametrize("name", PICTURES)
def test_picture_is_smaller_than_100_kilobytes(name: str) -> None:
    assert (FOLDER / f"{name}.png").stat().st_size < BYTES
