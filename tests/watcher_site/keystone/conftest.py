"""The site with tokens of Keystone, and a Keystone on loopback."""

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from django.core.cache import caches
from pytest_django import Settings

from tests.watcher_site.keystone.identity import Keystone
from watcher_site.keystone.tokens import middleware


@pytest.fixture
def running() -> Iterator[Keystone]:
    server = Keystone()
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.answering.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def keystone(running: Keystone, settings: Settings, tmp_path: Path) -> Iterator[Keystone]:
    """Keystone, whose tokens are the only ones that the site accepts."""
    settings.TOKEN_SOURCES = ["keystone"]
    settings.KEYSTONE_CONFIG = str(running.write_options(tmp_path / "watcher.conf"))
    middleware.cache_clear()
    caches["keystone"].clear()
    yield running
    middleware.cache_clear()


@pytest.fixture
def both(keystone: Keystone, settings: Settings) -> Keystone:
    """Keystone, beside the tokens of the site itself."""
    settings.TOKEN_SOURCES = ["local", "keystone"]
    return keystone
