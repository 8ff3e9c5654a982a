"""The cluster models that an audit needs depend on its strategy and its parameters."""

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


def ended(goal: str, strategy: str, *, scope: list[Any] | None = None, **parameters: Any) -> tuple[str, str | None]:
    """Return the state and the message of an audit that was run."""
    synchronize()
    audit = create_audit(audit_type="ONESHOT", goal=goal, strategy=strategy, parameters=parameters)
    Audit.objects.filter(pk=audit.pk).update(scope=scope or [])
    DecisionEngine().run_next_audit()
    found = Audit.objects.get(pk=audit.pk)
    return found.state, found.status_message


def balance(**options: Any) -> tuple[str, str | None]:
    return ended("workload_balancing", "storage_capacity_balance", **options)


def evacuate(**parameters: Any) -> tuple[str, str | None]:
    return ended("hardware_maintenance", "zone_migration", **parameters)


def store() -> None:
    pools = make_pool("a@lvm#one"), make_pool("b@lvm#one")
    make_volume("data", pools[0], size=90)


def test_storage_is_balanced_in_a_cloud_of_storage_alone() -> None:
    store()
    assert balance() == ("SUCCEEDED", None)


def test_pools_are_emptied_in_a_cloud_of_storage_alone() -> None:
    store()
    assert evacuate(**POOLS) == ("SUCCEEDED", None)


def test_nodes_are_emptied_in_a_cloud_without_storage() -> None:
    make_server(node=make_node("compute1"))
    assert evacuate(**NODES) == ("SUCCEEDED", None)


@pytest.mark.parametrize("parameters", [NODES, NODES | POOLS, {}])
def test_an_audit_that_asks_for_nodes_fails_where_there_are_none(parameters: dict[str, Any]) -> None:
    store()
    assert evacuate(**parameters) == ("FAILED", "The cluster state is not defined")


def test_an_audit_that_asks_for_storage_fails_where_there_is_none() -> None:
    make_node("compute1")
    assert balance() == ("FAILED", "The cluster state is not defined: there are no storage nodes.")


def test_a_scope_that_leaves_no_storage_fails_an_audit_that_asks_for_it() -> None:
    store()
    scope = [{"compute": []}, {"storage": [{"availability_zones": [{"name": "elsewhere"}]}]}]
    assert balance(scope=scope) == ("FAILED", "The scope of the audit leaves no storage node.")
