"""Host aggregates, flavors, storage and volumes in topology files."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from cluster.models import Flavor, HostAggregate, Pool, StorageNode, Volume, VolumeAttachment
from tests.builders import make_aggregate, make_flavor, make_pool, make_volume

pytestmark = pytest.mark.django_db

SIZE = {"vcpus": 2, "memory": 2048, "disk": 20}
FULL: dict[str, Any] = {
    "compute_nodes": [
        {"hostname": "compute1", **SIZE, "zone": "az1", "power_state": "off"},
        {"hostname": "compute2", **SIZE},
    ],
    "servers": [
        {"name": "web-1", "node": "compute1", **SIZE, "flavor": "small", "created_at": "2026-01-02T03:04:05Z"},
        {"name": "web-2", "node": None, **SIZE},
    ],
    "host_aggregates": [{"id": 1, "name": "ssd", "compute_nodes": ["compute1"], "metadata": {"ssd": "true"}}],
    "flavors": [{"id": "1", "name": "small", **SIZE, "extra_specs": {"a": "b"}}],
    "volume_types": [{"name": "fast", "extra_specs": {"volume_backend_name": "nvme"}}, {"name": "big"}],
    "storage_nodes": [{"host": "a@lvm", "zone": "az1", "volume_types": ["fast", "big"]}],
    "pools": [{"name": "a@lvm#one", "total_capacity_gb": 100, "max_over_subscription_ratio": 2.0}],
    "volumes": [
        {"name": "data", "size": 40, "pool": "a@lvm#one", "volume_type": "fast", "attachments": ["web-1"]},
        {"name": "spare", "size": 80, "pool": "a@lvm#one", "has_snapshots": True, "bootable": True},
    ],
}
MODELS = (HostAggregate, Flavor, StorageNode, Pool, Volume, VolumeAttachment)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "topology.json"


def load(file: Path, **changed: Any) -> None:
    file.write_text(json.dumps({**FULL, **changed}, indent=2))
    call_command("load_topology", str(file))


def one(collection: str, **attributes: Any) -> dict[str, list[dict[str, Any]]]:
    """Return a collection with the first object of ``FULL``, with these attributes changed."""
    return {collection: [{**FULL[collection][0], **attributes}]}


def rows() -> list[Any]:
    return [[*model.objects.order_by("pk").values()] for model in MODELS]


def test_aggregate_has_its_nodes(file: Path) -> None:
    load(file)
    aggregate = HostAggregate.objects.get()
    assert (aggregate.id, aggregate.name, aggregate.metadata) == (1, "ssd", {"ssd": "true"})
    [node] = aggregate.nodes.all()
    assert (node.hostname, node.zone, node.power_state) == ("compute1", "az1", "off")


def test_aggregate_with_a_known_id_is_updated(file: Path) -> None:
    load(file)
    load(file, **one("host_aggregates", name="fast", compute_nodes=["compute2"]))
    aggregate = HostAggregate.objects.get()
    assert (aggregate.name, [node.hostname for node in aggregate.nodes.all()]) == ("fast", ["compute2"])


def test_deleted_aggregate_with_a_known_id_is_restored(file: Path) -> None:
    load(file)
    HostAggregate.objects.soft_delete()
    load(file)
    assert HostAggregate.objects.present().count() == 1


def test_pool_capacities_are_computed_from_its_volumes(file: Path) -> None:
    load(file)
    pool = Pool.objects.get()
    assert (pool.total_volumes, pool.allocated_capacity_gb, pool.free_capacity_gb) == (2, 120, 0)
    assert (pool.provisioned_capacity_gb, pool.virtual_free) == (120, 80)


def test_volume_has_its_type_servers_and_status(file: Path) -> None:
    load(file)
    data, spare = Volume.objects.order_by("name")
    assert (data.volume_type.name, data.status, [server.name for server in data.servers.all()]) == (
        "fast",
        "in-use",
        ["web-1"],
    )
    assert (spare.status, spare.has_snapshots, spare.bootable) == ("available", True, True)


def test_attachment_is_accepted_by_server_uuid(file: Path) -> None:
    uuid = "11111111-2222-4333-8444-555555555555"
    servers = [{"name": "web-1", "uuid": uuid, **SIZE}]
    load(file, servers=servers, **one("volumes", attachments=[uuid]))
    assert str(VolumeAttachment.objects.get().server.uuid) == uuid


def test_detached_volume_is_available(file: Path) -> None:
    load(file)
    load(file, **one("volumes", attachments=[]))
    assert (Volume.objects.get(name="data").status, VolumeAttachment.objects.count()) == ("available", 0)


def test_creation_times_are_loaded(file: Path) -> None:
    load(file, **one("volumes", created_at="2026-01-02T03:04:05"))
    volume = Volume.objects.get()
    assert volume.created_at.isoformat() == "2026-01-02T03:04:05+00:00"
    assert volume.servers.get().created_at == volume.created_at


def test_reloading_an_unchanged_file_changes_nothing(file: Path) -> None:
    load(file)
    before = rows()
    load(file)
    assert rows() == before


def test_changed_nodes_of_an_aggregate_are_counted_as_a_change(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load(file)
    load(file, **one("host_aggregates", compute_nodes=[]))
    assert capsys.readouterr().out.splitlines()[-1] == "0 new, 1 changed, 11 as they were"


def test_query_count_does_not_depend_on_the_number_of_volumes(file: Path, django_assert_max_num_queries: Any) -> None:
    volumes = [{"name": f"data-{number}", "size": 0, "pool": "a@lvm#one"} for number in range(300)]
    with django_assert_max_num_queries(40):
        load(file, volumes=volumes)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (
            one("host_aggregates", compute_nodes=["far"]),
            "host_aggregates[0].compute_nodes[0]: there is no compute node",
        ),
        (one("host_aggregates", id="1"), "host_aggregates[0].id: '1' is not of type 'integer'"),
        (
            {"host_aggregates": [{"id": 0, "name": "a"}, {"id": 0, "name": "b"}]},
            "host_aggregates[1].id: 0 is that of host_aggregates[0], too.",
        ),
        (
            {"host_aggregates": [{"id": 1, "name": "a"}, {"id": 2, "name": "a"}]},
            "host_aggregates[1].name: a is that of host_aggregates[0], too.",
        ),
        (
            one("storage_nodes", volume_types=["slow"]),
            "storage_nodes[0].volume_types[0]: there is no volume type slow.",
        ),
        (one("storage_nodes", host="a"), "storage_nodes[0].host: 'a' does not match"),
        (one("pools", name="b@lvm#one"), "pools[0].name: there is no storage node b@lvm."),
        (one("pools", name="one"), "pools[0].name: 'one' does not match"),
        (one("pools", colour="red"), "pools[0].colour: is not an attribute of a pool."),
        (one("volumes", pool="a@lvm#two"), "volumes[0].pool: there is no pool a@lvm#two."),
        (one("volumes", volume_type="slow"), "volumes[0].volume_type: there is no volume type slow."),
        (one("volumes", attachments=["web-9"]), "volumes[0].attachments[0]: there is no server web-9."),
        (one("volumes", attachments=["web-1", "web-2"]), "volumes[0].attachments: only a multiattach volume"),
        (one("volumes", size=201), "volumes[0].size: a@lvm#one has a capacity of 200 in total, and its volumes use"),
        (one("volumes", created_at="yesterday"), "volumes[0].created_at: 'yesterday' is not a date with a time."),
        (
            one("volumes", created_at="2026-13-01T00:00:00Z"),
            "volumes[0].created_at: '2026-13-01T00:00:00Z' is not a date",
        ),
    ],
)
def test_invalid_object_is_refused_and_nothing_is_written(file: Path, wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(CommandError) as problem:
        load(file, **wrong)
    assert reason in str(problem.value)
    assert [model.objects.exists() for model in MODELS] == [False] * len(MODELS)


def test_invalid_value_is_reported_with_the_line(file: Path) -> None:
    file.write_text('{"volumes": [\n{"name": "data", "size": 1},\n{"name": "more",\n"size": -1}]}')
    with pytest.raises(CommandError, match=r"topology\.json:4: volumes\[1\]\.size: -1 is less than the minimum of 0"):
        call_command("load_topology", str(file))


def test_duplicate_name_of_an_aggregate_is_refused(file: Path) -> None:
    make_aggregate(9, "ssd")
    with pytest.raises(CommandError, match=r"host_aggregates\[0\]\.name: ssd is that of another host aggregate"):
        load(file)


def test_duplicate_flavor_id_is_refused(file: Path) -> None:
    make_flavor("other", flavor_id="1")
    with pytest.raises(CommandError, match=r"flavors\[0\]\.id: 1 is that of another flavor"):
        load(file)


def test_migrating_volume_cannot_be_placed_in_another_pool(file: Path) -> None:
    make_volume("data", make_pool("b@lvm#one"), destination=make_pool("b@lvm#two"), migration_status="migrating")
    with pytest.raises(CommandError, match=r"volumes\[0\]: data is being moved"):
        load(file)


def test_pool_cannot_become_smaller_than_its_volumes(file: Path) -> None:
    load(file)
    with pytest.raises(CommandError, match=r"pools\[0\]\.total_capacity_gb: a@lvm#one has a capacity of 20 in total"):
        load(file, volumes=[], **one("pools", total_capacity_gb=10))
