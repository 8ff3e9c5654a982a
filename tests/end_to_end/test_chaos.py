"""Hundreds of actions, while their processes are killed and stopped at random."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from actions.models import Action
from tests.chaos.broker import BadPost, OwnBroker
from tests.chaos.effects import forget, watch
from tests.chaos.fleet import Fleet
from tests.chaos.storm import rage
from tests.chaos.verdict import complaints
from tests.database import database_url

pytestmark = [
    pytest.mark.longest,
    pytest.mark.slow,
    pytest.mark.postgresql,
    pytest.mark.django_db(transaction=True),
]
# In seconds: long enough for a busy machine, and a hanging process is still reported.
PATIENCE = 1500


@pytest.fixture
def watched() -> Iterator[None]:
    watch()
    yield
    forget()


def test_killed_appliers_complete_every_action_exactly_once(watched: None, tmp_path: Path) -> None:
    appliers = [["manage.py", "run_applier"]] * 2
    log = tmp_path / "log"
    with Fleet(appliers, log, {"DATABASE_URL": database_url()}) as fleet:
        weather = rage(fleet, 600, seed=1, patience=PATIENCE, every=18)
    assert complaints() == []
    assert weather.killed >= 5
    assert weather.recovered
    assert Action.objects.filter(derived_from__isnull=False).exists()
    assert "Traceback" not in log.read_text()


@pytest.mark.own_rabbitmq
def test_killed_workers_and_a_broker_with_duplicates_complete_every_action_exactly_once(
    watched: None, tmp_path: Path
) -> None:
    """Run two appliers and two workers of two processes each, with a separate RabbitMQ."""
    commands = [["manage.py", "run_applier"]] * 2 + [["manage.py", "run_worker", "--workers=2"]] * 2
    log = tmp_path / "log"
    with OwnBroker(tmp_path) as broker:
        environment = {"DATABASE_URL": database_url(), **broker.environment_of_the_site}
        with Fleet(commands, log, environment) as fleet:
            post = BadPost(broker, "watcher", seed=1)
            weather = rage(fleet, 1200, seed=2, patience=PATIENCE, every=60, trouble=post.trouble)
            post.end()
    assert complaints() == []
    assert weather.killed >= 5
    assert weather.recovered
    assert Action.objects.filter(derived_from__isnull=False).exists()
    assert broker.killed
    assert post.postman.doubled >= 20
