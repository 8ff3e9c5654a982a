"""Fixtures of a Keystone on loopback, and of a site that accepts its tokens."""

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest
from django.conf import settings as site_settings
from django.core.cache import caches
from django.test import RequestFactory
from pytest_django import Settings

from tests.waiting import wait_for
from tests.watcher_site.keystone.identity import Keystone
from watcher_site.keystone.tokens import identify_user, middleware


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
    """Run a Keystone whose tokens are the only tokens that the site accepts."""
    settings.TOKEN_SOURCES = ["keystone"]
    settings.KEYSTONE_CONFIG = str(running.write_options(tmp_path / "watcher.conf"))
    middleware.cache_clear()
    caches["keystone"].clear()
    yield running
    middleware.cache_clear()


@pytest.fixture
def both(keystone: Keystone, settings: Settings) -> Keystone:
    """Run a Keystone whose tokens the site accepts in addition to local tokens."""
    settings.TOKEN_SOURCES = ["local", "keystone"]
    return keystone


@pytest.fixture
def hang(keystone: Keystone) -> Iterator[Callable[[], None]]:
    """Return a function that makes Keystone hang, and returns when every thread that may wait for it waits.

    Keystone must have confirmed a token before, so that the site has a token of its own.
    """
    waiting: list[Thread] = []

    def identify(token: str) -> None:
        identify_user(RequestFactory().get("/", headers={"X-Auth-Token": token}))

    def hang() -> None:
        keystone.answering.clear()
        tokens = [keystone.issue("ines", "admin") for _ in range(site_settings.WEB_THREADS // 2)]
        for token in tokens:
            waiting.append(Thread(target=identify, args=(token,)))
            waiting[-1].start()
        wait_for(lambda: set(tokens) <= set(keystone.validations))

    yield hang
    keystone.answering.set()
    for thread in waiting:
        thread.join()
