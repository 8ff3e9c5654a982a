"""Fixtures of a site with logins at an OpenID provider on loopback."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests.watcher_site.openid.identity import Provider, serve_provider


@pytest.fixture
def provider(settings: Settings) -> Iterator[Provider]:
    with serve_provider(settings) as running:
        yield running
