"""Hundreds of actions, while the processes that run them are killed and put to sleep at random."""

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
# In seconds, for machines that do much else besides: a hanging process is reported in the end.
PATIENCE = 1500


@pytest.fixture
def watched() -> Iterator[None]:
    watch()
    yield
    forget()


def test_every_action_ends_once_and_does_once_what_it_says_whatever_is_killed(watched: None, tmp_path: Path) -> None:
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
def test_so_it_does_through_a_broker_that_is_killed_and_delivers_twice(watched: None, tmp_path: Path) -> None:
    """Two appliers and two workers of two processes each, on a RabbitMQ of their own."""
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
