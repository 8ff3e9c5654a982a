"""Matching of rules with actions, by the objects of the cloud that an action affects."""

from typing import Any
from uuid import uuid4

import pytest

from actions.exclusions.matching import find_excluded
from actions.exclusions.rules import Rule
from actions.graph.proposals import ProposedAction
from cluster.models import HostAggregate, Server
from tests.actions.exclusions.builders import make_exclusion
from tests.builders import (
    make_aggregate,
    make_cluster,
    make_member,
    make_node,
    make_pool,
    make_resource,
    make_server,
    make_stack,
    make_volume,
)
from tests.plans.applier.test_commits import counted

pytestmark = pytest.mark.django_db


@pytest.fixture
def server() -> Server:
    """Return a server on compute1 (zone east, aggregate gpu), of project shop and of a node of cluster web."""
    node = make_node("compute1", zone="east")
    make_node("compute2", zone="west")
    make_aggregate(12, "gpu", node)
    server = make_server("web-1", node, project_id="shop")
    make_member("one", server=server, cluster=make_cluster("web"))
    return server


def migration(server: Server, **parameters: Any) -> ProposedAction:
    named = {"resource_id": str(server.uuid), "migration_type": "live", "source_node": "compute1", **parameters}
    return ProposedAction("migrate", named)


def is_excluded(action: ProposedAction, **attributes: Any) -> bool:
    rule = Rule.of(make_exclusion(f"rule {uuid4()}", **attributes))
    return action.uuid in find_excluded([action], [rule])


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("servers", "web-1"),
        ("compute_nodes", "compute1"),
        ("aggregates", "gpu"),
        ("aggregates", "12"),
        ("availability_zones", "east"),
        ("projects", "shop"),
        ("clusters", "web"),
    ],
)
def test_migration_affects_its_server_and_the_groups_of_the_server(server: Server, kind: str, name: str) -> None:
    assert is_excluded(migration(server), targets={kind: [name]})


def test_migration_affects_its_destination(server: Server) -> None:
    assert not is_excluded(migration(server), targets={"compute_nodes": ["compute2"]})
    assert is_excluded(migration(server, destination_node="compute2"), targets={"compute_nodes": ["compute2"]})
    assert is_excluded(migration(server, destination_node="compute2"), targets={"availability_zones": ["west"]})


def test_rule_with_several_kinds_requires_a_match_of_each_kind(server: Server) -> None:
    make_server("db", make_node("compute3"), project_id="bank")
    assert is_excluded(migration(server), targets={"servers": ["db", "web-1"], "projects": ["shop"]})
    assert not is_excluded(migration(server), targets={"servers": ["web-1"], "projects": ["bank"]})


def test_rule_matches_only_its_action_types(server: Server) -> None:
    assert is_excluded(migration(server), action_types=["migrate"])
    assert not is_excluded(migration(server), action_types=["stop", "resize"], targets={"servers": ["web-1"]})


@pytest.mark.parametrize("name", ["compute1", "uuid"])
def test_action_on_a_compute_node_affects_the_node_by_hostname_or_uuid(server: Server, name: str) -> None:
    named = str(server.node.uuid) if name == "uuid" else name
    action = ProposedAction("change_nova_service_state", {"resource_id": named, "state": "disabled"})
    for targets in ({"compute_nodes": ["compute1"]}, {"aggregates": ["gpu"]}, {"availability_zones": ["east"]}):
        assert is_excluded(action, targets=targets)
    assert not is_excluded(action, targets={"servers": ["web-1"]})


def test_node_action_affects_the_server_and_cluster_of_the_node(server: Server) -> None:
    member = make_member("two", server=make_server("web-2", server.node), cluster=make_cluster("db"))
    action = ProposedAction("NODE_DELETE", {"resource_id": str(member.uuid)})
    for targets in ({"servers": ["web-2"]}, {"clusters": ["db"]}, {"aggregates": ["gpu"]}):
        assert is_excluded(action, targets=targets)
    assert not is_excluded(action, targets={"clusters": ["web"]})


def test_volume_action_affects_its_project_and_the_attached_servers(server: Server) -> None:
    volume = make_volume(pool=make_pool("compute2"), attached_to=[server], project_id="bank")
    named = {"resource_id": str(volume.uuid), "migration_type": "migrate", "destination_node": "compute2"}
    action = ProposedAction("volume_migrate", named)
    assert is_excluded(action, targets={"servers": ["web-1"], "projects": ["bank"]})
    assert not is_excluded(action, targets={"compute_nodes": ["compute2"]})  # That is a pool of the same name.


def test_cluster_action_affects_the_cluster_and_not_its_members(server: Server) -> None:
    cluster = make_cluster("db")
    action = ProposedAction("CLUSTER_CHECK", {"resource_id": str(cluster.uuid)})
    assert is_excluded(action, targets={"clusters": ["db"]})
    assert not is_excluded(action, targets={"servers": ["web-1"]})


def test_node_join_affects_the_cluster_that_it_joins(server: Server) -> None:
    joined = make_cluster("db")
    node = make_member("two", server=make_server("web-2", server.node))
    action = ProposedAction("NODE_JOIN", {"resource_id": str(node.uuid), "cluster_id": str(joined.uuid)})
    assert is_excluded(action, targets={"clusters": ["db"]})
    assert not is_excluded(action, targets={"clusters": ["web"]})


@pytest.mark.parametrize("named", ["web-1", "web-2"])
def test_resource_action_affects_its_server_and_its_former_server(server: Server, named: str) -> None:
    new = make_server("web-2", server.node)
    resource = make_resource(make_stack(), physical_id=str(new.uuid), former_physical_id=str(server.uuid))
    assert is_excluded(
        ProposedAction("delete_resource", {"resource_id": str(resource.uuid)}), targets={"servers": [named]}
    )


def test_matching_query_count_does_not_depend_on_the_number_of_actions_and_rules(server: Server) -> None:
    costs = []
    elsewhere = make_node("compute9")
    for number in (2, 100):
        actions = [migration(make_server(f"s{one}", elsewhere), source_node="compute9") for one in range(number)]
        named = {"aggregates": frozenset({"12"}), "clusters": frozenset({str(uuid4())})}
        rules = [Rule(None, uuid4(), "x", "", frozenset(), named, None, None, True) for _ in range(number)]
        with counted() as statements:
            assert not find_excluded(actions, rules)
        costs.append(len(statements))
    assert costs[0] == costs[1] <= 5


def test_compute_service_action_affects_its_host_and_the_named_node(server: Server) -> None:
    named = {"resource_id": str(server.node.uuid), "resource_name": "compute2", "state": "disabled"}
    action = ProposedAction("change_nova_service_state", named)
    assert is_excluded(action, targets={"compute_nodes": ["compute2"]})
    assert is_excluded(action, targets={"availability_zones": ["west"]})
    assert is_excluded(action, targets={"compute_nodes": ["compute1"]})


def test_node_creation_affects_the_host_chosen_by_the_placement_policy(server: Server) -> None:
    node = make_member("two", data={"placement": {"host": "compute2"}})
    action = ProposedAction("NODE_CREATE", {"resource_id": str(node.uuid)})
    assert is_excluded(action, targets={"compute_nodes": ["compute2"]})
    assert not is_excluded(action, targets={"compute_nodes": ["compute1"]})


def test_rule_matches_an_aggregate_by_its_uuid(server: Server) -> None:
    aggregate = HostAggregate.objects.get(pk=12)
    assert is_excluded(migration(server), targets={"aggregates": [str(aggregate.uuid)]})
