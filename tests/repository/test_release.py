"""The version of the site, which a release changes in several files (docs/contributing.md, "Releases")."""

import re
import subprocess
import tomllib

import pytest

from tests.processes import ROOT

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
SECTION = r"^## (?P<version>\d+\.\d+\.\d+) - (?P<date>\d{4}-\d\d-\d\d)$"
# File names of wheels, tags of images, and the header of the catalogue of translations.
EXAMPLE = r"(?:watcher_site-|watcher-site:|Watcher Site )(\d+\.\d+\.\d+)"


def sections() -> list[str]:
    return re.findall(r"^## .*$", (ROOT / "CHANGELOG.md").read_text(), re.M)


def test_changelog_begins_with_unreleased_changes_and_the_newest_version() -> None:
    unreleased, newest, *_ = sections()
    assert unreleased == "## Unreleased"
    found = re.match(SECTION, newest)
    assert found
    assert found["version"] == VERSION


def test_changelog_sections_have_a_version_and_a_date() -> None:
    assert [section for section in sections()[1:] if not re.match(SECTION, section)] == []


@pytest.mark.parametrize(
    "path", ["docs/deployment.md", "docs/operating.md", "watcher_site/locale/de/LC_MESSAGES/django.po"]
)
def test_examples_use_the_current_version(path: str) -> None:
    assert set(re.findall(EXAMPLE, (ROOT / path).read_text())) == {VERSION}


def test_every_tag_has_a_changelog_section() -> None:
    tags = subprocess.run(["git", "tag", "--list", "v*"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    found = (re.match(SECTION, section) for section in sections())
    assert set(tags.split()) <= {f"v{match['version']}" for match in found if match}
