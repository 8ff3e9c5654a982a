"""Fixtures for all tests: services if they are available, and users with their rights."""

import gc
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from itertools import groupby
from math import inf
from pathlib import Path

import hypothesis
import pytest
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.db import connection, transaction
from pytest_django.plugin import DjangoDbBlocker

from tests.api import Caller
from tests.broker import broker_answers
from tests.chaos.broker import is_installed
from tests.clearing import disable_synchronous_commit, save_migrated_rows
from tests.database import is_sqlite
from tests.migrated_database import drop_database, make_database
from tests.settings import DATABASE
from watcher_site.backends import permission_keys
from watcher_site.history import logins, recording
from watcher_site.outbox.writing import listeners

# Without bytecode files, each process of the suite would compile the site again, and each run all tests.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A slow generation of examples on a busy machine is no fault of the code.
hypothesis.settings.register_profile("suite", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("suite")


# The variables with which the Makefile's targets of these names run the tests with this mark, which take minutes.
ON_REQUEST = {
    "conformance": "WATCHER_TEST_CONFORMANCE",
    "keystone": "WATCHER_TEST_KEYSTONE",
    "openstack": "WATCHER_TEST_OPENSTACK",
    "upgrade_test": "WATCHER_TEST_UPGRADE",
}


# Modules that only this target runs, and whose import takes a second in each test process.
IMPORTED_ON_REQUEST = {"test_schemathesis.py": "conformance"}

# Folders of tests of other services, and of policies: they write rows, but with statements that other tests run with
# both databases. The synchronization with OpenStack has statements of its own.
OTHER_SERVICES = (
    "tests/cluster/datasources",
    "tests/cluster/drivers/openstack",
    "tests/cluster/policies",
    "tests/watcher_site/keystone",
    "tests/watcher_site/openid",
)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    target = IMPORTED_ON_REQUEST.get(collection_path.name)
    return True if target and os.environ.get(ON_REQUEST[target]) != "1" else None


def missing_service(mark: pytest.Mark) -> str:
    """Return why the service or a program of a mark is missing, or an empty text."""
    if mark.name == "programs" and (missing := [name for name in mark.args if not shutil.which(name)]):
        return f"{missing[0]} is not installed"
    if mark.name == "postgresql" and is_sqlite():
        return "no PostgreSQL server answers at WATCHER_TEST_POSTGRESQL_URL"
    if mark.name == "browser" and not (shutil.which("chromium") or os.environ.get("WATCHER_TEST_CHROMIUM")):
        return "Chromium is not installed"
    if mark.name == "rabbitmq" and not broker_answers():
        return "no RabbitMQ server answers at WATCHER_TEST_BROKER_URL"
    if mark.name == "own_rabbitmq" and not is_installed():
        return "no package rabbitmq-server is installed"
    return ""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start slow tests first, distributed over all processes, so that no process ends long after the others.

    pytest-xdist splits the list into equal consecutive parts, one for each process. The slow tests of a module run in
    one process, because each process makes the fixtures of a module again.
    """
    if os.environ.get("WATCHER_TEST_ONLY_DATABASE") == "1":
        config.hook.pytest_deselected(items=[item for item in items if not depends_on_database(item)])
        items[:] = filter(depends_on_database, items)
    processes = int(getattr(config, "workerinput", {}).get("workercount", 1))
    items.sort(key=lambda item: (item.get_closest_marker("longest") is None, item.get_closest_marker("slow") is None))
    number = sum(item.get_closest_marker("slow") is not None for item in items)
    slow, quick = items[:number], items[number:]
    shares: list[list[pytest.Item]] = [[] for _ in range(processes)]
    for _, module in groupby(slow, key=lambda item: item.path):
        min(shares, key=len).extend(module)
    for share in shares:
        space = max(len(items) // processes - len(share), 0)
        share += quick[:space]
        del quick[:space]
    items[:] = [*(item for share in shares for item in share), *quick]


def depends_on_database(item: pytest.Item) -> bool:
    uses = item.get_closest_marker("django_db") or {"db", "transactional_db"} & set(getattr(item, "fixturenames", ()))
    folder = item.path.parent.relative_to(item.config.rootpath).as_posix()
    is_of_service = folder.startswith(OTHER_SERVICES) and not folder.endswith("synchronization")
    return bool(uses) and not is_of_service and item.get_closest_marker("any_database") is None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Exclude imported objects from garbage collections, and collect garbage as rarely as the site's web processes."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for name, variable in ON_REQUEST.items():
        if item.get_closest_marker(name) and os.environ.get(variable) != "1":
            pytest.skip(f"make {name.replace('_', '-')} runs this test")
    for mark in item.iter_markers():
        if mark.name == "postgresql" and DATABASE == "sqlite":
            pytest.skip("needs PostgreSQL, and the suite runs on SQLite")
        reason = missing_service(mark)
        if reason and os.environ.get("WATCHER_REQUIRE_SERVICES") == "1":
            pytest.fail(f"WATCHER_REQUIRE_SERVICES is set, and {reason}")
        if reason:
            pytest.skip(reason)


def person(name: str, group: str | None = None, **columns: object) -> User:
    user = User.objects.create_user(name, password=f"{name}-password", **columns)
    if group:
        User.groups.through.objects.create(user=user, group=Group.objects.get(name=group))
    # A process that serves requests knows the names of permissions: no test counts that query.
    permission_keys()
    return user


@pytest.fixture(scope="session")
def django_db_setup(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    django_test_environment: None,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[None]:
    """Replace pytest-django's fixture, which migrates a database in each test process of each run."""
    if is_sqlite():
        # In a file, as that of the site, because connections to a database in memory do not wait for each other.
        name = str(tmp_path_factory.mktemp("database") / "site.sqlite3")
    else:
        process = getattr(request.config, "workerinput", {}).get("workerid", "")
        name = "_".join(filter(None, ["test", connection.settings_dict["NAME"], process]))
    with django_db_blocker.unblock():
        make_database(name, request.config.cache.mkdir("migrated"))
        save_migrated_rows()
        disable_synchronous_commit()
    yield
    with django_db_blocker.unblock():
        drop_database(name)


@pytest.fixture(scope="module")
def module_transaction(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Roll back the rows that fixtures of a module create, after all tests of the module have used them.

    Each test of the module runs in its own savepoint. None may have the marker ``django_db(transaction=True)``.
    """
    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture(autouse=True)
def no_heartbeat_left_running() -> Iterator[None]:
    """Fail a test that leaves a heartbeat running, which would write to the database of later tests."""
    before = threading.enumerate()
    yield
    assert not [thread for thread in threading.enumerate() if thread.name == "heartbeat" and thread not in before]


@pytest.fixture(autouse=True)
def empty_subscriptions_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cache an empty table of subscriptions, so that no test counts the query that reads it."""
    monkeypatch.setattr("watcher_site.outbox.writing.SECONDS", inf)
    monkeypatch.setattr(listeners, "patterns", frozenset())
    monkeypatch.setattr(listeners, "read_at", 0)


@pytest.fixture
def cloud_admin(db: None) -> User:
    return person("alice", "cloud-admin")


@pytest.fixture
def reader(db: None) -> User:
    return person("rob", "reader")


@pytest.fixture
def stranger(db: None) -> User:
    """Return a user who may log in and has no permissions."""
    return person("sam")


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    """Clear the cache of the process, which keeps charts for minutes."""
    cache.clear()


@pytest.fixture(autouse=True)
def _reset_refusal_limits() -> None:
    """Reset the limits of history, which records a bounded number of refusals a minute."""
    for limit in (logins.failure_limit, recording.refusal_limit, recording.reading_refusal_limit):
        limit.forget()


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    """A cloud administrator at the newest version of the API."""
    return Caller(cloud_admin)
