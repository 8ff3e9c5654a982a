"""The command load_planetlab fills a cloud and its samples from traces of PlanetLab."""

import gzip
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from cluster.models import ComputeNode, HostAggregate, Sample, Server
from cluster.topology.planetlab import MIPS

pytestmark = pytest.mark.django_db
HEAD = ",".join(["vm", *(f"t{step:03}" for step in range(288))])


def day(tmp_path: Path, *rows: str, head: str = HEAD) -> str:
    path = tmp_path / "day.csv.gz"
    path.write_bytes(gzip.compress("\n".join([head, *rows]).encode()))
    return str(path)


def trace(name: str, first: int = 0) -> str:
    return ",".join([name, *(str((first + step) % 101) for step in range(288))])


def test_cloud_has_hosts_of_two_types_and_one_server_per_trace(tmp_path: Path) -> None:
    call_command("load_planetlab", day(tmp_path, trace("a"), trace("b")))
    assert ComputeNode.objects.count() == 800
    assert [aggregate.nodes.count() for aggregate in HostAggregate.objects.all()] == [400, 400]
    assert list(Server.objects.values_list("name", "node__hostname", "vcpus", "memory")) == [
        ("a", "planetlab-000", 125, 870),
        ("b", "planetlab-001", 100, 1740),
    ]


def test_sample_at_the_requested_time_of_day_is_dated_now(tmp_path: Path) -> None:
    call_command("load_planetlab", day(tmp_path, trace("a")), "--at", "02:35")
    newest = Sample.objects.order_by("-time").first()
    assert newest is not None
    assert newest.value == 31
    assert timezone.now() - newest.time < timedelta(minutes=1)
    assert Sample.objects.count() == 24


def test_reloading_at_another_time_replaces_the_samples(tmp_path: Path) -> None:
    path = day(tmp_path, trace("a"))
    call_command("load_planetlab", path, "--at", "02:35")
    call_command("load_planetlab", path, "--at", "00:05")
    assert list(Sample.objects.order_by("time").values_list("value", flat=True)) == [0, 1]


def test_reloading_keeps_migrated_servers_on_their_nodes(tmp_path: Path) -> None:
    path = day(tmp_path, trace("a"), trace("b"))
    call_command("load_planetlab", path, "--at", "00:05")
    ComputeNode.objects.filter(hostname="planetlab-000").update(status="disabled")
    Server.objects.filter(name="a").update(node=ComputeNode.objects.get(hostname="planetlab-001"))
    call_command("load_planetlab", path, "--at", "02:35")
    assert set(Server.objects.values_list("name", "node__hostname")) == {
        ("a", "planetlab-001"),
        ("b", "planetlab-001"),
    }
    assert ComputeNode.objects.get(hostname="planetlab-000").status == "disabled"


def test_load_without_enough_capacity_changes_nothing(tmp_path: Path) -> None:
    path = day(tmp_path, *map(trace, "ab"))
    call_command("load_planetlab", path)
    # A server of another day that needs more memory than is free.
    Server.objects.update(memory=4000, name="of an earlier day")
    samples = Sample.objects.count()
    with pytest.raises(CommandError, match=f"{path}: conflicts with existing objects: ") as problem:
        call_command("load_planetlab", path)
    assert (problem.value.returncode, Server.objects.count(), Sample.objects.count()) == (2, 2, samples)


def test_hosts_have_the_speed_memory_and_power_of_their_type(tmp_path: Path) -> None:
    call_command("load_planetlab", day(tmp_path, trace("a")))
    last = ComputeNode.objects.filter(hostname__in=["planetlab-798", "planetlab-799"])
    sizes = [(node.vcpus * MIPS, node.memory) for node in last]
    powers = [node.aggregates.get().metadata["power"] for node in last]
    assert sizes == [(3720, 4096), (5320, 4096)]
    assert [(power[0], power[-1], len(power)) for power in powers] == [(86, 117, 11), (93.7, 135, 11)]


def test_flavors_are_assigned_to_servers_in_turn(tmp_path: Path) -> None:
    call_command("load_planetlab", day(tmp_path, *map(trace, "abcde")))
    sizes = [(server.vcpus * MIPS, server.memory) for server in Server.objects.order_by("name")]
    assert sizes == [(2500, 870), (2000, 1740), (1000, 1740), (500, 613), (2500, 870)]


def test_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"nothing\.csv\.gz: cannot be read: No such file or directory\."):
        call_command("load_planetlab", str(tmp_path / "nothing.csv.gz"))


def test_truncated_file_is_refused(tmp_path: Path) -> None:
    path = Path(day(tmp_path, *map(trace, "abc")))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CommandError, match="is not a gzipped CSV file: Compressed file ended"):
        call_command("load_planetlab", str(path))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([trace("a"), trace("a")], ":3: vm: must be a name that no other row has."),
        (["a,1,2"], ":2: there must be 288 whole percentages"),
        ([trace("a").replace("100", "101")], ":2: there must be 288 whole percentages"),
        ([], ":2: there must be a row."),
    ],
)
def test_invalid_row_is_reported_and_nothing_is_written(tmp_path: Path, rows: list[str], expected: str) -> None:
    path = day(tmp_path, *rows)
    with pytest.raises(CommandError) as problem:
        call_command("load_planetlab", path)
    assert str(problem.value).startswith(path + expected)
    assert (problem.value.returncode, ComputeNode.objects.exists()) == (2, False)


def test_file_without_gzip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "day.csv.gz"
    path.write_text(HEAD)
    with pytest.raises(CommandError, match="is not a gzipped CSV file: Not a gzipped file"):
        call_command("load_planetlab", str(path))


def test_invalid_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="time of the day"):
        call_command("load_planetlab", day(tmp_path, trace("a")), "--at", "25:00")
