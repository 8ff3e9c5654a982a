"""The decision engine on a cloud that it has to read first."""

from datetime import timedelta

import pytest
from pytest_django import Settings

from audits.engine.engine import DecisionEngine
from audits.models import Audit
from audits.operations.creation import create_audit
from cluster.models import ComputeNode, Synchronization
from cluster.operations.synchronization import synchronize
from cluster.topology.loading import load_topology
from tests.builders import make_strategy
from tests.cluster.emulator.server import Emulator
from watcher_site.management.commands.prepare import may_be_filled
from watcher_site.refusals import Conflict

pytestmark = pytest.mark.django_db
READING = "os-hypervisors/detail"


@pytest.fixture
def engine(settings: Settings) -> DecisionEngine:
    settings.SYNC_INTERVAL = timedelta(0)
    return DecisionEngine()


def audit(strategy_name: str = "saving_energy", goal: str = "saving_energy") -> Audit:
    strategy = make_strategy(strategy_name, goal)
    return create_audit(audit_type="ONESHOT", goal=strategy.goal.name, strategy=strategy.name)


def reread(row: Audit) -> Audit:
    return Audit.objects.get(pk=row.pk)


def test_an_audit_looks_at_the_cloud_as_it_is(emulator: Emulator, engine: DecisionEngine) -> None:
    answered = audit()
    engine.run_next_audit()
    assert (reread(answered).state, ComputeNode.objects.count()) == ("SUCCEEDED", 2)


def test_an_audit_soon_after_a_reading_does_not_read_again(emulator: Emulator, engine: DecisionEngine) -> None:
    synchronize()
    audit()
    engine.run_next_audit()
    assert emulator.count(READING) == 1


def test_an_audit_reads_again_what_is_older_than_it_may_be(
    emulator: Emulator, engine: DecisionEngine, settings: Settings
) -> None:
    settings.SYNC_MAX_AGE = timedelta(0)
    synchronize()
    audit()
    engine.run_next_audit()
    assert emulator.count(READING) == 2


def test_an_audit_of_a_cloud_that_cannot_be_read_fails_with_the_reason(
    emulator: Emulator, engine: DecisionEngine
) -> None:
    emulator.fail(READING, 503, times=99, message="Out of order.")
    answered = audit()
    engine.run_next_audit()
    found = reread(answered)
    assert found.state == "FAILED"
    assert found.status_message.startswith("The cloud could not be read: The cloud answered with status 503 at ")
    assert found.status_message.endswith(": Out of order.")


def test_an_audit_that_needs_nothing_of_the_cloud_succeeds_although_it_cannot_be_read(
    emulator: Emulator, engine: DecisionEngine
) -> None:
    emulator.fail(READING, 503, times=99)
    answered = audit("dummy", "dummy")
    engine.run_next_audit()
    assert (reread(answered).state, emulator.count(READING)) == ("SUCCEEDED", 0)


def test_the_engine_goes_on_after_a_cloud_that_could_not_be_read(emulator: Emulator, engine: DecisionEngine) -> None:
    emulator.fail(READING, 503, times=3)
    audit()
    engine.run_next_audit()
    answered = audit()
    engine.run_next_audit()
    assert reread(answered).state == "SUCCEEDED"


def test_the_engine_reads_the_cloud_by_itself(emulator: Emulator, engine: DecisionEngine, settings: Settings) -> None:
    settings.SYNC_INTERVAL = timedelta(hours=1)
    engine.run_next_audit()
    engine.run_next_audit()
    assert (ComputeNode.objects.count(), emulator.count(READING)) == (2, 1)


def test_the_engine_reads_again_when_its_interval_is_over(
    emulator: Emulator, engine: DecisionEngine, settings: Settings
) -> None:
    settings.SYNC_INTERVAL = timedelta(microseconds=1)
    engine.run_next_audit()
    engine.run_next_audit()
    assert emulator.count(READING) == 2


def test_the_engine_leaves_the_cloud_alone_that_another_engine_read(
    emulator: Emulator, engine: DecisionEngine, settings: Settings
) -> None:
    settings.SYNC_INTERVAL = timedelta(hours=1)
    DecisionEngine().run_next_audit()
    engine.run_next_audit()
    assert emulator.count(READING) == 1


def test_the_engine_goes_on_where_its_reading_fails(
    emulator: Emulator, engine: DecisionEngine, settings: Settings
) -> None:
    settings.SYNC_INTERVAL = timedelta(hours=1)
    emulator.fail(READING, 503, times=3)
    engine.run_next_audit()
    assert Synchronization.current().problem
    answered = audit()
    engine.run_next_audit()
    assert reread(answered).state == "SUCCEEDED"


def test_the_engine_goes_on_where_our_tables_do_not_take_what_it_read(
    emulator: Emulator, engine: DecisionEngine, settings: Settings
) -> None:
    settings.SYNC_INTERVAL = timedelta(hours=1)
    emulator.nova.flavors["f1"]["vcpus"] = None
    assert engine.run_next_audit() is False
    assert "does not fit into our tables" in Synchronization.objects.get().problem


def test_a_cloud_that_is_mirrored_is_not_filled_from_files(emulator: Emulator) -> None:
    with pytest.raises(Conflict, match="only the embedded cloud can be filled"):
        load_topology({"compute_nodes": []})


def test_a_cloud_that_is_mirrored_gets_no_demonstration(emulator: Emulator) -> None:
    assert not may_be_filled()


def test_the_embedded_cloud_is_filled_with_the_demonstration() -> None:
    assert may_be_filled()
