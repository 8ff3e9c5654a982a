"""Load-balancer pools in topology files, and the command use_pool."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from cluster.models import BalancingMember, BalancingPool
from tests.builders import make_balancing_pool, make_server
from watcher_site.models import HistoryEntry

pytestmark = pytest.mark.django_db
SIZE = {"vcpus": 2, "memory": 2048, "disk": 20}
SERVERS = [{"name": f"web-{number}", **SIZE} for number in (1, 2)]
MEMBERS: list[dict[str, Any]] = [
    {"server": "web-1", "port": 80, "weight": 3, "connections": 12},
    {"server": "web-2", "port": 80},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "topology.json"


def load(file: Path, *pools: dict[str, Any]) -> str:
    output = StringIO()
    file.write_text(json.dumps({"servers": SERVERS, "balancing_pools": list(pools)}))
    call_command("load_topology", str(file), stdout=output)
    return output.getvalue().strip()


def shown() -> list[tuple[Any, ...]]:
    return list(BalancingMember.objects.values_list("pool__name", "server__name", "port", "weight", "connections"))


def test_pool_is_loaded_with_its_members(file: Path) -> None:
    assert load(file, {"name": "web", "members": MEMBERS}) == "3 new, 0 changed, 0 as they were"
    assert shown() == [("web", "web-1", 80, 3, 12), ("web", "web-2", 80, 1, 0)]


def test_member_is_accepted_by_server_uuid(file: Path) -> None:
    server = make_server("web-1", vcpus=2)
    load(file, {"name": "web", "members": [{"server": str(server.uuid), "port": 80}]})
    assert shown() == [("web", "web-1", 80, 1, 0)]


def test_reloading_an_unchanged_file_changes_nothing(file: Path) -> None:
    load(file, {"name": "web", "members": MEMBERS})
    before = list(BalancingMember.objects.values())
    assert load(file, {"name": "web", "members": MEMBERS}) == "0 new, 0 changed, 3 as they were"
    assert list(BalancingMember.objects.values()) == before


def test_reloading_updates_given_fields_and_keeps_omitted_fields_and_members(file: Path) -> None:
    load(file, {"name": "web", "members": MEMBERS})
    members = [{"server": "web-1", "port": 8080}]
    assert load(file, {"name": "web", "members": members}) == "0 new, 1 changed, 2 as they were"
    assert shown() == [("web", "web-1", 8080, 3, 12)]


def test_file_without_members_keeps_the_members(file: Path) -> None:
    load(file, {"name": "web", "members": MEMBERS})
    load(file, {"name": "web"}, {"name": "api"})
    assert len(shown()) == 2
    assert BalancingPool.objects.count() == 2


@pytest.mark.parametrize(
    ("pool", "rule"),
    [
        ({}, "balancing_pools[0]: 'name' is a required property."),
        ({"name": "web", "colour": 1}, "balancing_pools[0].colour: is not an attribute of a load-balancer pool."),
        (
            {"name": "web", "members": [{"server": "web-1", "port": 80, "name": "x"}]},
            "balancing_pools[0].members[0].name: is not an attribute of a member of a pool.",
        ),
        (
            {"name": "web", "members": [{"server": "web-1", "port": 0}]},
            "balancing_pools[0].members[0].port: 0 is less than the minimum of 1.",
        ),
        (
            {"name": "web", "members": [{"server": "web-1", "port": 80, "weight": 257}]},
            "balancing_pools[0].members[0].weight: 257 is greater than the maximum of 256.",
        ),
        (
            {"name": "web", "members": [{"server": "web-9", "port": 80}]},
            "balancing_pools[0].members[0].server: there is no server web-9.",
        ),
        (
            {"name": "web", "members": [MEMBERS[0], MEMBERS[0]]},
            "balancing_pools[0].members[1].server: web-1 is in the pool already.",
        ),
    ],
    ids=["no name", "unknown key", "unknown member key", "port", "weight", "unknown server", "duplicate member"],
)
def test_invalid_pool_is_refused_and_nothing_is_written(file: Path, pool: dict[str, Any], rule: str) -> None:
    with pytest.raises(CommandError) as caught:
        load(file, pool)
    assert str(caught.value) == f"{file}:1: {rule}"
    assert not BalancingPool.objects.exists()


def test_duplicate_pool_name_is_refused(file: Path) -> None:
    with pytest.raises(CommandError, match=r"balancing_pools\[1\]\.name: web is that of balancing_pools\[0\], too\."):
        load(file, {"name": "web"}, {"name": "web"})


# The command.


def use(*arguments: str) -> str:
    output = StringIO()
    call_command("use_pool", *arguments, stdout=output)
    return output.getvalue()


def test_command_opens_closes_and_prints_connections() -> None:
    server = make_server()
    make_balancing_pool("web", server)
    assert use("web", "--open", "5") == f"{server.uuid} weight 1 connections 5\n"
    assert use("web", "--close", "3") == f"{server.uuid} weight 1 connections 2\n"
    assert use("web", "--open", "1", "--close", "9") == f"{server.uuid} weight 1 connections 0\n"


def test_history_records_changes_of_connections_only() -> None:
    pool = make_balancing_pool("web", make_server())
    use("web", "--open", "5")
    use("web")
    entry = HistoryEntry.objects.get()
    assert (entry.deed, entry.object_uuid, entry.object_name) == ("balancing_pool.use", pool.uuid, "web")
    assert entry.details == {"open": 5, "close": 0}


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["none"], "Load-balancer pool none not found"),
        (["web", "--open", "1"], "Pool web has no member that gets connections"),
        (["web", "--open=-1"], "argument --open: must be a whole number up to 1000000"),
        (["web", "--close", "many"], "argument --close: must be a whole number up to 1000000"),
        (["web", "--open", "9999999"], "argument --open: must be a whole number up to 1000000"),
    ],
)
def test_invalid_arguments_are_reported_in_one_line(arguments: list[str], rule: str) -> None:
    make_balancing_pool("web")
    with pytest.raises(CommandError, match=rule):
        use(*arguments)


def test_command_is_refused_for_a_real_cloud(settings: Settings) -> None:
    settings.CLOUD = "cluster.drivers.openstack.OpenStackCloud"
    with pytest.raises(CommandError, match="the connections of a real cloud are its own"):
        use("web", "--open", "1")
