"""The upgrade of a site under load, from the previous release (docs/operating.md, "Upgrading")."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from tests.benchmarks.database import server_url
from tests.end_to_end.upgrades.load import Load
from tests.end_to_end.upgrades.release import previous_release, this_release
from tests.end_to_end.upgrades.site import Client, Site, environment
from tests.waiting import wait_for
from tests.watcher_site.notifications.receiver import Receiver, receiving

pytestmark = [pytest.mark.upgrade_test, pytest.mark.slow, pytest.mark.postgresql]
# In seconds: the duration of the load at each stage, in which plans start and end.
STAGE = 8
# The commands of the processes except the web processes, in the order in which an upgrade restarts them.
PROCESSES = {
    "applier": ("run_applier",),
    "relay": ("relay_notifications",),
    "decision-engine": ("run_decision_engine",),
}
# Each query returns the rows of a fault, of which none may exist when all plans have ended.
FAULTS = {
    "lost": "SELECT uuid, action_type FROM actions_action WHERE losses > 0",
    "executed twice": """
        SELECT action_id FROM actions_actionevent WHERE event = 'execute' AND result = 'Success'
        GROUP BY action_id HAVING count(*) > 1
    """,
    "repeated": "SELECT uuid FROM actions_action WHERE action_type IN ('nop', 'sleep') AND attempt > 1",
    "failed action": """
        SELECT uuid, action_type, state, status_message FROM actions_action
        WHERE state NOT IN ('SUCCEEDED', 'SKIPPED') AND action_plan_id IN (
            SELECT id FROM plans_actionplan WHERE started_by IS NOT NULL)
    """,
    "failed audit": "SELECT uuid, status_message FROM audits_audit WHERE state = 'FAILED'",
    "unsent": "SELECT event_type, object_uuid FROM watcher_site_notification WHERE NOT is_dispatched",
    "undelivered": "SELECT uuid, state, problem FROM watcher_site_delivery",
    "unfinished": "SELECT uuid, state FROM plans_actionplan WHERE state IN ('PENDING', 'ONGOING', 'CANCELLING')",
}
SERVERS = "SELECT count(*) FROM cluster_server WHERE deleted_at IS NULL"


@pytest.fixture
def database() -> Iterator[str]:
    """Create an empty database, as the tables of the test database are those of this release."""
    server, name = server_url(), f"watcher_upgrade_{uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield f"{server.rpartition('/')[0]}/{name}"
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as started:
        yield started


@pytest.fixture
def sites(database: str, tmp_path: Path) -> Iterator[tuple[Site, Site]]:
    """Return the sites of the previous release and of this one, on the same database."""
    variables = environment(
        database,
        WATCHER_POLL_INTERVAL="0.2",
        WATCHER_EMBEDDED_CLOUD_SECONDS="0.2",
        WATCHER_WEBHOOK_PRIVATE_ADDRESSES="true",
    )
    old = Site(previous_release(tmp_path / "release"), variables, tmp_path / "old")
    new = Site(this_release(), variables, tmp_path / "new")
    yield old, new
    old.stop()
    new.stop()


def prepare(old: Site, receiver: Receiver) -> Client:
    """Create the tables, the demonstration and an administrator with the commands of the previous release."""
    old.succeed("migrate", "--verbosity=0")
    old.succeed("load_demonstration")
    old.environment["WATCHER_USER_PASSWORD"] = uuid4().hex
    old.succeed("create_user", "operator", "--group", "cloud-admin")
    token = old.succeed("create_token", "operator").split()[-1]
    old.start_web()
    client = Client(old.port, token)
    client.require(201, "POST", "/v1/subscriptions", {"name": "all", "url": receiver.url, "event_types": ["action*"]})
    client.require(201, "POST", "/v1/profiles", {"name": "web", "spec": {"flavor": "tiny"}})
    return client


def start_processes(site: Site) -> None:
    for name, command in PROCESSES.items():
        site.start(name, "manage.py", *command)


def complaints(database: str, load: Load, sites: tuple[Site, Site], receiver: Receiver) -> list[str]:
    """Return descriptions of all faults after the upgrade."""
    found = list(load.failures)
    for fault, statement in FAULTS.items():
        found += [f"{fault}: {row}" for row in query(database, statement)]
    states = dict(query(database, "SELECT uuid::text, state FROM plans_actionplan"))
    found += [f"plan {plan} is {states[plan]}" for plan in load.started if states[plan] != "SUCCEEDED"]
    skipped = {uuid for (uuid,) in query(database, "SELECT uuid::text FROM actions_action WHERE state = 'SKIPPED'")}
    found += [f"action {uuid} was skipped and executed" for uuid in load.skipped - skipped]
    return found + wrong_notifications(load.started, receiver) + errors(sites)


def wrong_notifications(plans: set[str], receiver: Receiver) -> list[str]:
    """Return notifications that were sent twice, and plans whose execution was not notified once."""
    ids = Counter(event["id"] for event in receiver.events)
    found = [f"notification {id} was sent {times} times" for id, times in ids.items() if times > 1]
    ends = Counter(event["subject"] for event in receiver.events if event["type"] == "action_plan.execution.end")
    return found + [f"the end of plan {plan} was notified {ends[plan]} times" for plan in plans if ends[plan] != 1]


def errors(sites: tuple[Site, Site]) -> list[str]:
    """Return the lines that processes logged as errors."""
    lines = [line for site in sites for line in site.logs().splitlines()]
    return [line[:2000] for line in lines if '"level": "error"' in line or line.startswith("Traceback")]


def query(database: str, statement: str) -> list[Any]:
    with psycopg.connect(database) as connection:
        return connection.execute(statement).fetchall()


def test_site_under_load_is_upgraded_without_failures(
    database: str, sites: tuple[Site, Site], receiver: Receiver
) -> None:
    old, new = sites
    client = prepare(old, receiver)
    servers = query(database, SERVERS)[0][0]
    start_processes(old)
    load = Load([client])
    load.start()
    try:
        load.wait(STAGE)
        # A new process refuses to start on the old tables, if they differ.
        is_unapplied = new.run("manage.py", "migrate", "--check").returncode != 0
        assert (new.run("manage.py", "run_applier", "--once").returncode == 2) == is_unapplied
        new.succeed("migrate", "--verbosity=0")
        load.wait(STAGE)
        start_processes(new)
        new.start_web()
        client = Client(new.port, client.token)
        load.clients = [*load.clients, client]
        load.wait(STAGE)
        # As a proxy does: it sends the old process no more requests before the process stops.
        load.clients = [client]
        assert set(old.stop()) == {0}
        load.wait(STAGE)
    finally:
        load.stop()
    with suppress(AssertionError):
        wait_for(lambda: not any(query(database, FAULTS[name]) for name in ("unfinished", "unsent", "undelivered")))
    assert set(new.stop()) == {0}
    assert complaints(database, load, sites, receiver) == []
    assert query(database, SERVERS)[0][0] == servers + sum(load.capacities.values())
    assert len(load.started) > 10
