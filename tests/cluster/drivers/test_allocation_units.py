"""Placement's minimum, maximum and step of an allocation, in each place that chooses a compute node."""

import pytest

from audits.strategies.placement import Place
from cluster.drivers.base import NoValidHost, cloud
from cluster.drivers.scheduler import find_broken_unit_rule
from cluster.policies.affinity import find_capacity
from cluster.simulated.cloud import SimulatedCloud
from tests.audits.clusters import node, server
from tests.builders import make_flavor, make_node, make_server

RULES = {"vcpus": {"min_unit": 2, "max_unit": 16, "step_size": 2}}
LIMITED = {"vcpus": 16, "vcpu_ratio": 4.0, "allocation_units": RULES}


@pytest.mark.parametrize(
    ("vcpus", "misfit"),
    [
        (16, ""),
        (0, ""),
        (18, "at most 16 VCPUs for one server, not 18"),
        (1, "at least 2 VCPUs for one server, not 1"),
        (3, "VCPUs in steps of 2, not 3"),
    ],
)
def test_broken_unit_rule_is_named(vcpus: int, misfit: str) -> None:
    assert find_broken_unit_rule(RULES, {"vcpus": vcpus, "memory": 1}) == misfit


def test_node_without_rules_accepts_every_size() -> None:
    assert find_broken_unit_rule(None, {"vcpus": 10**6}) == ""


def test_strategy_respects_the_unit_rules_of_a_node() -> None:
    place = Place(node("a", capacity_vcpus=64, allocation_units=RULES))
    assert [place.fits(server("w", vcpus=vcpus)) for vcpus in (16, 17, 18)] == [True, False, False]


@pytest.mark.django_db
def test_cluster_has_no_capacity_on_a_node_whose_unit_rule_is_broken() -> None:
    needed = {"vcpus": 18, "memory": 0, "disk": 0}
    assert find_capacity(make_node(**LIMITED), {}, needed) == 0


@pytest.mark.django_db
@pytest.mark.parametrize("is_foreseen", [False, True])
def test_migration_to_a_node_whose_unit_rule_is_broken_is_refused(is_foreseen: bool) -> None:
    wide = make_server(node=make_node(vcpus=64), vcpus=18)
    make_node("compute2", **LIMITED)
    driver = SimulatedCloud.load() if is_foreseen else cloud()
    with pytest.raises(NoValidHost, match="compute2 takes at most 16 VCPUs for one server, not 18"):
        driver.live_migrate(str(wide.uuid), "compute2")
    with pytest.raises(NoValidHost):
        driver.live_migrate(str(wide.uuid))


@pytest.mark.django_db
def test_resize_beyond_a_unit_rule_of_the_node_is_refused() -> None:
    grows = make_server(node=make_node(**LIMITED), vcpus=2)
    make_flavor("wide", vcpus=18, memory=2048, disk=20)
    with pytest.raises(NoValidHost, match="takes at most 16 VCPUs"):
        cloud().resize(str(grows.uuid), "wide")
