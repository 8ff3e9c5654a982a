"""A policy file, and Keystone with the users to whom its rules apply."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.watcher_site.keystone.conftest import keystone, running  # noqa: F401 (fixtures)
from watcher_site.authorization.enforcement import policy_file

Write = Callable[[str], Path]


@pytest.fixture
def write(settings: Settings, tmp_path: Path) -> Write:
    """Write the policy file of the site, and return its path."""
    file = tmp_path / "policy.yaml"
    policy_file.cache_clear()

    def write(text: str) -> Path:
        file.write_text(text)
        settings.POLICY_FILE = str(file)
        return file

    return write
