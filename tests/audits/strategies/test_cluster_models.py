"""Cluster models that an audit requires, by strategy and parameters."""

from typing import Any

import pytest

from audits.engine.engine import DecisionEngine
from audits.models import Audit
from audits.operations.creation import create_audit
from audits.plugins import synchronize
from tests.builders import make_node, make_pool, make_server, make_volume

pytestmark = pytest.mark.django_db

POOLS = {"storage_pools": [{"src_pool": "a@lvm#one", "dst_pool": "b@lvm#one"}]}
NODES = {"compute_nodes": [{"src_node": "compute1"}]}


def run_audit(
    goal: str, strategy: str, *, scope: list[Any] | None = None, **parameters: Any
) -> tuple[str, str | None]:
    """Run an audit, and return its state and its status message."""
    synchronize()
    audit = create_audit(audit_type="ONESHOT", goal=goal, strategy=strategy, parameters=parameters)
    Audit.objects.filter(pk=audit.pk).update(scope=scope or [])
    DecisionEngine().run_next_audit()
    found = Audit.objects.get(pk=audit.pk)
    return found.state, found.status_message


def balance(**options: Any) -> tuple[str, str | None]:
    return run_audit("workload_balancing", "storage_capacity_balance", **options)


def evacuate(**parameters: Any) -> tuple[str, str | None]:
    return run_audit("hardware_maintenance", "zone_migration", **parameters)


def make_storage() -> None:
    pools = make_pool("a@lvm#one"), make_pool("b@lvm#one")
    make_volume("data", pools[0], size=90)


def test_storage_capacity_balance_requires_no_compute_nodes() -> None:
    make_storage()
    assert balance() == ("SUCCEEDED", None)


def test_zone_migration_of_pools_requires_no_compute_nodes() -> None:
    make_storage()
    assert evacuate(**POOLS) == ("SUCCEEDED", None)


def test_zone_migration_of_nodes_requires_no_storage() -> None:
    make_server(node=make_node("compute1"))
    assert evacuate(**NODES) == ("SUCCEEDED", None)


@pytest.mark.parametrize("parameters", [NODES, NODES | POOLS, {}])
def test_zone_migration_of_nodes_fails_without_compute_nodes(parameters: dict[str, Any]) -> None:
    make_storage()
    assert evacuate(**parameters) == ("FAILED", "The cluster state is not defined")


def test_storage_capacity_balance_fails_without_storage() -> None:
    make_node("compute1")
    assert balance() == ("FAILED", "The cluster state is not defined: there are no storage nodes.")


def test_storage_capacity_balance_fails_if_its_scope_matches_no_storage() -> None:
    make_storage()
    scope = [{"compute": []}, {"storage": [{"availability_zones": [{"name": "elsewhere"}]}]}]
    assert balance(scope=scope) == ("FAILED", "The scope of the audit leaves no storage node.")
