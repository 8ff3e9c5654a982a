"""NODE_UPDATE on the embedded cloud: changes of properties, changes of the profile, and failures."""

from typing import Any
from uuid import uuid4

import pytest

from actions.types.base import DONE, ActionContext, ActionFailed, ActionSkipException, make
from actions.types.nodes.node_update import NodeUpdate
from cluster.drivers.base import CloudError, NoValidHost, cloud
from cluster.drivers.ownership import acting_for
from cluster.models import Flavor, Node, Profile, Server
from tests.actions.types.nodes.test_node_recover import derived
from tests.actions.types.nodes.test_nodes import Killed, action, die, reload, status_of
from tests.builders import make_flavor, make_member, make_node, make_profile

pytestmark = pytest.mark.django_db


def update(node: Node, context: ActionContext | None = None, **inputs: Any) -> NodeUpdate:
    made = make("NODE_UPDATE", {"resource_id": str(node.uuid), **inputs}, context or derived())
    assert isinstance(made, NodeUpdate)
    return made


@pytest.fixture
def node() -> Node:
    make_node()
    made = make_member(profile=make_profile(spec={"flavor": "small", "image": "old"}))
    action("NODE_CREATE", made).execute()
    return reload(made)


@pytest.fixture
def large() -> Profile:
    make_flavor("large", vcpus=2)
    return make_profile("large", spec={"flavor": "large", "image": "old"})


def test_properties_of_the_node_are_updated(node: Node) -> None:
    changes = {"name": "db", "role": "primary", "metadata": {"rack": 4}, "tainted": True}
    assert update(node, **changes).execute() == DONE
    changed = reload(node)
    assert {name: getattr(changed, name) for name in changes} == changes
    assert (changed.status, changed.physical_id) == ("ACTIVE", node.physical_id)


@pytest.mark.parametrize("inputs", [{}, {"name": "web"}, {"tainted": False, "metadata": {}}])
def test_update_without_changes_reports_that(node: Node, inputs: dict[str, Any]) -> None:
    context = derived()
    assert update(node, context, **inputs).execute() == DONE
    assert context.outputs == {"reason": "No property to update."}


def test_update_to_the_current_profile_is_no_change(node: Node) -> None:
    context = derived()
    update(node, context, new_profile_id=str(node.profile.uuid)).execute()
    assert context.outputs == {"reason": "No property to update."}


@pytest.mark.parametrize(
    "inputs", [{"name": ""}, {"role": 3}, {"metadata": []}, {"tainted": "yes"}, {"new_profile_id": "large"}, {"x": 1}]
)
def test_invalid_inputs_are_refused(inputs: dict[str, Any]) -> None:
    with pytest.raises(ActionFailed, match="Invalid input parameters"):
        update(Node(uuid=uuid4()), **inputs)


def test_deleted_node_is_skipped() -> None:
    with pytest.raises(ActionSkipException, match="not found"):
        action("NODE_UPDATE", str(uuid4())).pre_condition()


def test_unknown_profile_is_refused(node: Node) -> None:
    missing = str(uuid4())
    with pytest.raises(ActionFailed, match=f"new_profile_id: there is no profile {missing}"):
        update(node, new_profile_id=missing).execute()


def test_server_is_resized_if_only_the_flavor_differs(node: Node, large: Profile) -> None:
    context = derived()
    assert update(node, context, new_profile_id=str(large.uuid), role="primary").execute() == DONE
    server = Server.objects.get()
    assert (server.flavor, server.uuid, context.outputs) == ("large", node.physical_id, {"operation": "RESIZE"})
    assert (reload(node).profile, reload(node).role) == (large, "primary")
    assert status_of(node) == ("ACTIVE", "Update succeeded")


def test_server_is_rebuilt_if_only_the_image_differs(node: Node) -> None:
    context, newer = derived(), make_profile("newer", spec={"flavor": "small", "image": "new"})
    update(node, context, new_profile_id=str(newer.uuid)).execute()
    assert (Server.objects.get().uuid, context.outputs) == (node.physical_id, {"operation": "REBUILD"})
    assert reload(node).profile == newer


def test_server_is_replaced_if_the_metadata_differs(node: Node) -> None:
    other = make_profile("other", spec={"flavor": "small", "image": "new", "metadata": {"a": "b"}})
    update(node, new_profile_id=str(other.uuid)).execute()
    server = Server.objects.present().get()
    assert (server.metadata, server.uuid) == ({"a": "b"}, reload(node).physical_id)
    assert server.uuid != node.physical_id
    assert Server.objects.count() == 2


def test_profile_of_a_node_without_server_is_used_for_its_next_server(node: Node, large: Profile) -> None:
    cloud().delete_server(str(node.physical_id))
    Node.objects.update(status="ERROR")
    update(node, new_profile_id=str(large.uuid)).execute()
    assert (reload(node).status, reload(node).profile) == ("ERROR", large)
    action("NODE_RECOVER", node).execute()
    assert Server.objects.present().get().flavor == "large"


def test_refused_resize_keeps_the_server_and_the_profile(node: Node, large: Profile) -> None:
    Flavor.objects.filter(name="large").update(vcpus=999)
    with pytest.raises(CloudError) as refusal:
        update(node, new_profile_id=str(large.uuid)).execute()
    assert status_of(node) == ("ACTIVE", f"Update failed: {refusal.value}")
    assert reload(node).profile == node.profile
    assert Server.objects.get().flavor == "small"


def test_replacement_without_a_valid_host_leaves_the_node_in_error(node: Node) -> None:
    make_flavor("huge", vcpus=999)
    other = make_profile("other", spec={"flavor": "huge", "image": "new"})
    with pytest.raises(NoValidHost):
        update(node, new_profile_id=str(other.uuid)).execute()
    assert (reload(node).status, reload(node).profile) == ("ERROR", other)


def test_node_in_deletion_cannot_be_updated(node: Node, large: Profile) -> None:
    Node.objects.update(status="DELETING")
    with pytest.raises(ActionFailed, match="is DELETING: something else is done to it"):
        update(node, new_profile_id=str(large.uuid)).execute()
    assert Server.objects.get().flavor == "small"


def interrupted_update(node: Node, profile: Profile) -> ActionContext:
    """Return the context of an update that was killed during the operation of the cloud."""
    context = derived(checkpoint=die)
    with acting_for("action", 1), pytest.raises(Killed):
        update(node, context, new_profile_id=str(profile.uuid)).execute()
    assert status_of(node) == ("UPDATING", "Update in progress")
    return context


@pytest.mark.parametrize("spec", [{"flavor": "large", "image": "old"}, {"flavor": "large", "image": "new"}])
def test_interrupted_update_is_completed_by_the_next_attempt(node: Node, large: Profile, spec: dict[str, str]) -> None:
    other = make_profile("other", spec=spec)
    context = interrupted_update(node, other)
    with acting_for("action", 2):
        update(node, derived(data=context.data), new_profile_id=str(other.uuid)).execute()
    server = Server.objects.present().get()
    assert (server.flavor, server.state, server.uuid) == ("large", "active", reload(node).physical_id)
    assert (reload(node).status, reload(node).profile) == ("ACTIVE", other)


def test_completed_update_without_a_recorded_outcome_is_not_repeated(node: Node, large: Profile) -> None:
    context = derived()
    update(node, context, new_profile_id=str(large.uuid)).execute()
    assert update(node, derived(data=context.data), new_profile_id=str(large.uuid)).execute() == DONE
    assert status_of(node) == ("ACTIVE", "Update succeeded")


def test_abort_of_a_resize_keeps_the_server(node: Node, large: Profile) -> None:
    context = interrupted_update(node, large)
    with acting_for("action", 1):
        assert update(node, derived(data=context.data), new_profile_id=str(large.uuid)).abort()
    assert (Server.objects.get().flavor, Server.objects.get().task_state) == ("small", None)
    assert status_of(node) == ("ACTIVE", "Update failed: It was interrupted")


def test_completed_update_cannot_be_aborted(node: Node) -> None:
    assert not update(node).abort()
