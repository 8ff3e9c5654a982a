"""The cache of validated tokens in memcached for all processes, and its outages."""

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest
from pytest_django import Settings

from tests.api import TokenCaller
from tests.watcher_site.keystone.identity import Keystone
from tests.watcher_site.keystone.memcached import Memcached
from watcher_site.keystone.tokens import middleware

pytestmark = pytest.mark.django_db


@pytest.fixture
def memcached() -> Iterator[Memcached]:
    server = Memcached()
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def simulate_new_process() -> None:
    """Clear the state of Keystone in this process, as in a new process."""
    middleware.cache_clear()


def test_token_is_validated_once_for_all_processes(
    keystone: Keystone, memcached: Memcached, settings: Settings, tmp_path: Path
) -> None:
    settings.KEYSTONE_CONFIG = str(keystone.write_options(tmp_path / "o.conf", memcached_servers=memcached.address))
    token = keystone.issue("rosa", "admin")
    for _ in range(2):
        assert TokenCaller(token).get("/goals").status_code == 200
        simulate_new_process()
    assert keystone.validations == [token]


def test_encrypted_cache_does_not_reveal_the_user(
    keystone: Keystone, memcached: Memcached, settings: Settings, tmp_path: Path
) -> None:
    options = {"memcache_security_strategy": "ENCRYPT", "memcache_secret_key": "a key of the site"}
    file = keystone.write_options(tmp_path / "o.conf", memcached_servers=memcached.address, **options)
    settings.KEYSTONE_CONFIG = str(file)
    token = keystone.issue("rosa", "admin")
    for _ in range(2):
        assert TokenCaller(token).get("/goals").status_code == 200
    assert keystone.validations == [token]
    [(_, stored)] = memcached.values.values()
    assert b"rosa" not in stored


def test_tokens_are_validated_by_keystone_during_a_memcached_outage(
    keystone: Keystone, settings: Settings, tmp_path: Path
) -> None:
    settings.KEYSTONE_CONFIG = str(keystone.write_options(tmp_path / "o.conf", memcached_servers="127.0.0.1:9"))
    token = keystone.issue("rosa", "admin")
    for _ in range(2):
        assert TokenCaller(token).get("/goals").status_code == 200
    assert keystone.validations == [token, token]


def test_token_of_the_shared_cache_is_accepted_while_all_threads_wait_for_keystone(
    keystone: Keystone, memcached: Memcached, settings: Settings, tmp_path: Path, hang: Callable[[], None]
) -> None:
    settings.KEYSTONE_CONFIG = str(keystone.write_options(tmp_path / "o.conf", memcached_servers=memcached.address))
    token = keystone.issue("rosa", "admin")
    assert TokenCaller(token).get("/goals").status_code == 200
    hang()
    assert TokenCaller(token).get("/goals").status_code == 200
