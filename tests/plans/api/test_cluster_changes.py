"""Changes of clusters and nodes through the API, from the request to the rows."""

import pytest

from cluster.models import PolicyBinding
from tests.actions.types.clusters.test_cluster_operations_api import api, members, request_and_run, sizes
from tests.api import Caller
from tests.builders import make_policy, make_profile

__all__ = ["api"]

pytestmark = pytest.mark.django_db

SCALING = {"event": "CLUSTER_SCALE_OUT", "adjustment": {"number": 2}}


def test_cluster_update_changes_the_cluster_and_its_nodes(api: Caller) -> None:
    make_profile("large web", "large")
    steps = {"/name": "front", "/timeout": 60, "/metadata/team": "shop", "/profile": "large web"}
    patch = [{"op": "add", "path": path, "value": value} for path, value in steps.items()]
    request_and_run(api, "PATCH", "/web", patch)
    shown = api.get("/clusters/front").json()
    assert (shown["timeout"], shown["metadata"], shown["profile_name"]) == (60, {"team": "shop"}, "large web")
    assert {node.profile.name for node in members()} == {"large web"}


def test_node_update_changes_the_node_and_tainted_nodes_are_removed_first(api: Caller) -> None:
    node = members()[2]
    steps = {"/name": "last", "/role": "front", "/tainted": True, "/metadata/team": "shop"}
    patch = [{"op": "add", "path": path, "value": value} for path, value in steps.items()]
    request_and_run(api, "PATCH", f"/{node.uuid}", patch, of="/nodes")
    shown = api.get(f"/nodes/{node.uuid}").json()
    assert (shown["name"], shown["role"], shown["tainted"]) == ("last", "front", True)
    assert shown["metadata"] == {"team": "shop"}
    request_and_run(api, "POST", "/web/scale_in")
    assert node not in members()


def test_policy_is_attached_applied_updated_and_detached(api: Caller) -> None:
    make_policy("grow", "senlin.policy.scaling-1.0", spec=SCALING)
    request_and_run(api, "POST", "/web/policies", {"policy": "grow"})
    assert api.get("/clusters/web/policies/grow").json()["priority"] == 100
    request_and_run(api, "POST", "/web/scale_out")
    assert sizes() == (5, 5, 5)
    changes = {"/enabled": False, "/priority": 7}
    patch = [{"op": "replace", "path": path, "value": value} for path, value in changes.items()]
    request_and_run(api, "PATCH", "/web/policies/grow", patch)
    shown = api.get("/clusters/web/policies/grow").json()
    assert (shown["enabled"], shown["priority"]) == (False, 7)
    request_and_run(api, "POST", "/web/scale_out")
    assert sizes() == (6, 6, 6)
    request_and_run(api, "DELETE", "/web/policies/grow")
    assert not PolicyBinding.objects.present().exists()
