"""The replay of a day: energy and overload as in the paper, and migrations by audits and plans of the site."""

import gzip
from pathlib import Path

import pytest
from pytest_django import Settings

from actions.models import Action
from audits.models import Audit
from cluster.datasources.base import Reading
from cluster.models import Server
from tests.benchmarks.replay.account import Account, power
from tests.benchmarks.replay.day import Day
from tests.benchmarks.replay.run import WAYS, replay
from tests.benchmarks.replay.samples import ReplayedSamples
from tests.benchmarks.replay.straight import StraightSite

TABLE = (100, 110, 130)
WAY = {way.name: way for way in WAYS}


@pytest.mark.parametrize(
    ("load", "expected"), [(0, 100), (0.25, 105), (0.5, 110), (0.75, 120), (1, 130), (1.5, 130), (-1, 100)]
)
def test_power_is_interpolated_between_the_values_of_the_table(load: float, expected: float) -> None:
    assert power(TABLE, load) == expected


def account(*demands: float) -> Account:
    found = Account({"a": TABLE, "b": TABLE}, seconds=3600)
    for demand in demands:
        found.add({"a": demand}, {"a": 10, "b": 10})
    return found


def test_energy_is_power_over_time_without_hosts_without_servers() -> None:
    assert account(0, 5, 10).energy == pytest.approx((100 + 110 + 130) / 1000)


def test_idle_host_uses_its_minimum_power() -> None:
    found = account()
    found.add({"a": 5}, {"a": 10, "b": 10}, idle=["a", "b"])
    assert found.energy == pytest.approx((110 + 100) / 1000)


def test_overload_is_the_share_of_active_time_with_full_demand() -> None:
    found = account(5, 10, 15, 9)
    found.add({"b": 1}, {"a": 10, "b": 10})
    assert (found.overload, found.overload_by_host) == (40, 25)
    assert found.unserved_share == pytest.approx(100 * 5 / 40)
    assert found.active_hosts == 1


@pytest.fixture
def day(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Day:
    """Three idle servers on separate hosts, of which one requests its whole processor later."""
    monkeypatch.setattr("cluster.topology.planetlab.HOSTS", 4)
    rows = [["a", *["1"] * 288], ["b", *["1"] * 288], ["c", *["1"] * 3, *["100"] * 285]]
    text = "\n".join(",".join(row) for row in [["vm", *(f"t{step:03}" for step in range(288))], *rows])
    (tmp_path / "day.csv.gz").write_bytes(gzip.compress(text.encode()))
    settings.DATASOURCE = "tests.benchmarks.replay.samples.ReplayedSamples"
    settings.EMBEDDED_CLOUD_SECONDS, settings.POLL_INTERVAL = 0, 0.02
    return Day(tmp_path / "day.csv.gz", memory_factor=2)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_replay_migrates_servers_by_plans_of_audits(day: Day) -> None:
    idle = replay(day, WAY["nothing"], steps=3)
    assert (idle.account.active_hosts, idle.migrations, Audit.objects.count()) == (3, 0, 0)
    result = replay(day, WAY["vm_workload_consolidation"], steps=3)
    assert Audit.objects.filter(state="SUCCEEDED").count() == 2
    assert result.migrations == Action.objects.filter(action_type="migrate", state="SUCCEEDED").count() == 2
    assert Server.objects.values("node").distinct().count() == 1
    assert result.account.energy < idle.account.energy
    assert len(result.decisions) == 2


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_replay_without_the_applier_has_the_same_result(day: Day) -> None:
    whole = replay(day, WAY["vm_workload_consolidation"], steps=5)
    quick = replay(day, WAY["vm_workload_consolidation"], steps=5, make_site=StraightSite)
    assert (quick.account, quick.migrations) == (whole.account, whole.migrations)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_decision_of_a_replay_does_not_read_later_samples(day: Day) -> None:
    day.rewind()
    uuids = dict(Server.objects.values_list("name", "uuid"))
    ReplayedSamples.now = day.time(2)
    assert ReplayedSamples().read(Reading("instance_cpu_usage", 300))[str(uuids["c"])] == 1
    ReplayedSamples.now = day.time(3)
    assert ReplayedSamples().read(Reading("instance_cpu_usage", 300))[str(uuids["c"])] == 100
