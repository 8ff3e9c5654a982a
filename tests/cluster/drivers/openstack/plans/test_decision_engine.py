"""The decision engine with a cloud that it synchronizes."""

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
from watcher_site.request_context import within_request

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


def test_audit_synchronizes_the_cloud_first(emulator: Emulator, engine: DecisionEngine) -> None:
    answered = audit()
    engine.run_next_audit()
    assert (reread(answered).state, ComputeNode.objects.count()) == ("SUCCEEDED", 2)


def test_reading_for_an_audit_has_the_id_of_the_request_that_created_the_audit(
    emulator: Emulator, engine: DecisionEngine
) -> None:
    with within_request("req-1"):
        audit()
    engine.run_next_audit()
    assert {found for line, found in emulator.request_ids if READING in line} == {"req-1"}


def test_audit_uses_a_recent_synchronization(emulator: Emulator, engine: DecisionEngine) -> None:
    synchronize()
    audit()
    engine.run_next_audit()
    assert emulator.count(READING) == 1


def test_audit_synchronizes_again_after_the_maximum_age(
    emulator: Emulator, engine: DecisionEngine, settings: Settings
) -> None:
    settings.SYNC_MAX_AGE = timedelta(0)
    synchronize()
    audit()
    engine.run_next_audit()
    assert emulator.count(READING) == 2


def test_audit_fails_with_the_reason_if_the_synchronization_fails(emulator: Emulator, engine: DecisionEngine) -> None:
    emulator.fail(READING, 503, times=99, message="Out of order.")
    answered = audit()
    engine.run_next_audit()
    found = reread(answered)
    assert found.state == "FAILED"
    assert found.status_message.startswith("The cloud could not be read: The cloud answered with status 503 at ")
    assert found.status_message.endswith(": Out of order.")


def test_audit_without_need_of_the_cloud_does_not_synchronize(emulator: Emulator, engine: DecisionEngine) -> None:
    emulator.fail(READING, 503, times=99)
    answered = audit("dummy", "dummy")
    engine.run_next_audit()
    assert (reread(answered).state, emulator.count(READING)) == ("SUCCEEDED", 0)


def test_engine_continues_after_an_audit_without_synchronization(emulator: Emulator, engine: DecisionEngine) -> None:
    emulator.fail(READING, 503, times=3)
    audit()
    engine.run_next_audit()
    answered = audit()
    engine.run_next_audit()
    assert reread(answered).state == "SUCCEEDED"


def test_engine_synchronizes_at_its_interval(emulator: Emulator, engine: DecisionEngine, settings: Settings) -> None:
    settings.SYNC_INTERVAL = timedelta(hours=1)
    engine.run_next_audit()
    engine.run_next_audit()
    assert (ComputeNode.objects.count(), emulator.count(READING)) == (2, 1)


def test_engine_synchronizes_again_after_its_interval(
    emulator: Emulator, engine: DecisionEngine, settings: Settings
) -> None:
    settings.SYNC_INTERVAL = timedelta(microseconds=1)
    engine.run_next_audit()
    engine.run_next_audit()
    assert emulator.count(READING) == 2


def test_engine_uses_the_synchronization_of_another_engine(
    emulator: Emulator, engine: DecisionEngine, settings: Settings
) -> None:
    settings.SYNC_INTERVAL = timedelta(hours=1)
    DecisionEngine().run_next_audit()
    engine.run_next_audit()
    assert emulator.count(READING) == 1


def test_engine_continues_after_a_failed_synchronization(
    emulator: Emulator, engine: DecisionEngine, settings: Settings
) -> None:
    settings.SYNC_INTERVAL = timedelta(hours=1)
    emulator.fail(READING, 503, times=3)
    engine.run_next_audit()
    assert Synchronization.current().problem
    answered = audit()
    engine.run_next_audit()
    assert reread(answered).state == "SUCCEEDED"


def test_engine_continues_after_contents_that_violate_a_database_constraint(
    emulator: Emulator, engine: DecisionEngine, settings: Settings
) -> None:
    settings.SYNC_INTERVAL = timedelta(hours=1)
    emulator.nova.flavors["f1"]["vcpus"] = None
    assert engine.run_next_audit() is False
    assert "do not accept an object of the cloud" in Synchronization.objects.get().problem


def test_topology_file_is_refused_with_a_mirrored_cloud(emulator: Emulator) -> None:
    with pytest.raises(Conflict, match="only the embedded cloud can be filled"):
        load_topology({"compute_nodes": []})


def test_mirrored_cloud_is_not_filled_with_the_demonstration(emulator: Emulator) -> None:
    assert not may_be_filled()


def test_embedded_cloud_may_be_filled_with_the_demonstration() -> None:
    assert may_be_filled()
