"""Hundreds of actions, while their processes are killed and stopped at random."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from actions.models import Action
from tests.chaos.broker import OwnBroker
from tests.chaos.broker_faults import BrokerFaults
from tests.chaos.change_records import create_triggers, drop_triggers
from tests.chaos.consistency import find_failures
from tests.chaos.process_group import ProcessGroup
from tests.chaos.process_killer import kill_processes
from tests.database import database_url

pytestmark = [
    pytest.mark.longest,
    pytest.mark.slow,
    pytest.mark.postgresql,
    pytest.mark.django_db(transaction=True),
]
# Long enough for a busy machine, and a hanging process is still reported.
DEADLINE_SECONDS = 1500


@pytest.fixture
def recorded_changes() -> Iterator[None]:
    create_triggers()
    yield
    drop_triggers()


def test_killed_appliers_complete_every_action_exactly_once(recorded_changes: None, tmp_path: Path) -> None:
    appliers = [["manage.py", "run_applier"]] * 2
    log = tmp_path / "log"
    with ProcessGroup(appliers, log, {"DATABASE_URL": database_url()}) as processes:
        report = kill_processes(processes, 600, seed=1, deadline_seconds=DEADLINE_SECONDS, actions_per_kill=18)
    assert find_failures() == []
    assert report.killed >= 5
    assert report.recovered
    assert Action.objects.filter(derived_from__isnull=False).exists()
    assert "Traceback" not in log.read_text()


@pytest.mark.own_rabbitmq
def test_killed_workers_and_a_broker_with_duplicates_complete_every_action_exactly_once(
    recorded_changes: None, tmp_path: Path
) -> None:
    """Run two appliers and two workers of two processes each, with a separate RabbitMQ."""
    commands = [["manage.py", "run_applier"]] * 2 + [["manage.py", "run_worker", "--workers=2"]] * 2
    log = tmp_path / "log"
    with OwnBroker(tmp_path) as broker:
        environment = {"DATABASE_URL": database_url(), **broker.site_environment}
        with ProcessGroup(commands, log, environment) as processes:
            faults = BrokerFaults(broker, "watcher", seed=1)
            report = kill_processes(
                processes,
                600,
                seed=2,
                deadline_seconds=DEADLINE_SECONDS,
                actions_per_kill=30,
                cause_fault=faults.cause,
            )
            faults.finish()
    assert find_failures() == []
    assert report.killed >= 5
    assert report.recovered
    assert Action.objects.filter(derived_from__isnull=False).exists()
    assert broker.killed
    assert faults.duplicator.duplicated >= 20
