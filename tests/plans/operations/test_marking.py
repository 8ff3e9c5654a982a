"""Marking resources, servers and nodes unhealthy, and clearing the marks."""

from typing import Any

import pytest

from actions.models import Action
from actions.types.base import ActionContext, make
from actions.types.locking import take_lock
from cluster.drivers.base import cloud
from cluster.models import Cluster, Lock, Node, Server, Stack, StackResource
from cluster.models.stacks import MARKED, Verb
from cluster.operations.marks import Mark
from plans.models import ActionPlan
from plans.operations.marks import ActionInProgress, mark
from tests.builders import make_cluster, make_member, make_node, make_resource, make_server, make_stack
from watcher_site.models import HistoryEntry
from watcher_site.refusals import Conflict, Invalid, NotFound

pytestmark = pytest.mark.django_db
CALLER: Any = {"user": "alice"}


@pytest.fixture
def stack() -> Stack:
    return Stack.objects.create(name="shop")


@pytest.fixture
def web(stack: Stack) -> StackResource:
    return make_resource(stack, "web")


def make_group(root: Stack, name: str = "group") -> tuple[StackResource, StackResource]:
    """Return a group of a stack and its only member."""
    group = make_resource(root, name, type="scaling_group")
    nested = make_stack(f"{root.name}-{name}", group)
    return group, make_resource(nested, "abcd")


def again(target: Any) -> Any:
    return type(target).objects.get(pk=target.pk)


def state(part: Any) -> tuple[str, str]:
    return again(part).status, again(part).status_reason


def make_action(kind: str = "update_stack", **columns: Any) -> str:
    """Make a running action, and return its UUID."""
    plan = ActionPlan.objects.create(state="ONGOING")
    values = {"action_type": kind, "input_parameters": {}, "state": "ONGOING", **columns}
    return str(Action.objects.create(action_plan=plan, **values).uuid)


# Resources and stacks


def test_repeated_mark_of_a_resource_replaces_the_reason(web: StackResource) -> None:
    found = mark(web, True, "it smells")
    assert found == Mark("resource", web.uuid, "web", True, "it smells", web.stack)
    mark(web, True)
    assert state(web) == ("CHECK_FAILED", MARKED)


def test_only_marked_resources_are_cleared(web: StackResource) -> None:
    mark(web, False, "never ill")
    assert state(web) == ("INIT_COMPLETE", "")
    mark(web, True)
    assert mark(web, False, "it was the network").unhealthy is False
    assert state(web) == ("CHECK_COMPLETE", "it was the network")


def test_resource_that_is_being_deleted_is_not_marked(web: StackResource) -> None:
    web.begin(Verb.DELETE)
    web.save_state()
    assert mark(web, True).unhealthy is False
    assert state(web) == ("DELETE_IN_PROGRESS", "DELETE started")


def test_deleted_resource_cannot_be_marked(web: StackResource) -> None:
    StackResource.objects.soft_delete()
    with pytest.raises(NotFound, match=r"^The Resource \(web\) could not be found in Stack shop\.$"):
        mark(web, True)


@pytest.mark.parametrize("kind", ["resource", "server", "stack"])
def test_long_reason_is_truncated_at_a_word(web: StackResource, kind: str) -> None:
    records: dict[str, Any] = {"resource": web, "server": make_server(), "stack": web.stack}
    found = mark(records[kind], True, "it does not answer " * 600)
    assert found.reason is not None
    assert 240 < len(found.reason) <= 255
    assert found.reason.endswith(("it…", "does…", "not…", "answer…"))


@pytest.mark.parametrize(("reason", "rule"), [(7, "must be a text"), ("a\0b", "must not contain NUL")])
def test_invalid_reason_is_refused(web: StackResource, reason: Any, rule: str) -> None:
    with pytest.raises(Invalid, match=f"^resource_status_reason: .*{rule}"):
        mark(web, True, reason)
    assert state(web)[0] == "INIT_COMPLETE"


@pytest.mark.parametrize(
    ("kind", "verb"), [("create_stack", "CREATE"), ("update_stack", "UPDATE"), ("replace_resource", "UPDATE")]
)
def test_resources_of_a_stack_cannot_be_marked_while_an_operation_holds_its_lock(
    stack: Stack, kind: str, verb: str
) -> None:
    _, member = make_group(stack)
    take_lock(stack, make_action(kind))
    for target in (member, stack):
        with pytest.raises(ActionInProgress, match=rf"already has an action \({verb}\) in progress\.$"):
            mark(target, True)
    assert state(member)[0] == "INIT_COMPLETE"


def test_operation_on_one_resource_blocks_marks_of_its_members_and_the_stack_only(
    stack: Stack, web: StackResource
) -> None:
    group, member = make_group(stack)
    action = make_action("replace_resource")
    take_lock(stack, action, exclusive=False)
    take_lock(group, action)
    for target in (group, member, stack):
        with pytest.raises(ActionInProgress):
            mark(target, True)
    assert mark(web, True).unhealthy


def test_lock_of_an_ended_action_does_not_block_marks(stack: Stack, web: StackResource) -> None:
    Lock.objects.create(stack=stack, action=make_action(state="SUCCEEDED"), is_exclusive=True)
    assert mark(web, True).unhealthy


def test_marking_a_nested_stack_marks_its_resource(stack: Stack) -> None:
    group, member = make_group(stack)
    assert mark(again(member.stack), True, "all of it").object_id == group.uuid
    assert (state(group)[0], state(member.stack)[0]) == ("CHECK_FAILED", "INIT_COMPLETE")


def test_history_records_changed_marks_with_user_and_reason_only(stack: Stack, web: StackResource) -> None:
    mark(web, True, "it smells", CALLER)
    mark(web, False, caller=CALLER)
    mark(web, False, caller=CALLER)
    entries = HistoryEntry.objects.order_by("pk").values_list("deed", "object_uuid", "within", "user", "message")
    assert list(entries) == [
        ("resource.mark", web.uuid, stack.uuid, "alice", "it smells"),
        ("resource.clear", web.uuid, stack.uuid, "alice", ""),
    ]


# Servers


def test_server_outside_of_stacks_and_clusters_is_marked_and_cleared_itself() -> None:
    server = make_server(node=make_node())
    assert mark(server, True, "slow disk") == Mark("server", server.uuid, "web-1", True, "slow disk")
    assert mark(server, False).reason is None
    assert again(server).unhealthy_reason is None


def test_marking_the_server_of_a_stack_marks_its_resource(web: StackResource) -> None:
    server = make_server(node=make_node())
    web.set_counterpart(server.uuid, 0)
    web.save_state()
    assert mark(server, True, "slow").object_id == web.uuid
    assert (state(web), again(server).unhealthy_reason) == (("CHECK_FAILED", "slow"), None)


def test_server_of_two_resources_cannot_be_marked(stack: Stack, web: StackResource) -> None:
    server = make_server()
    StackResource.objects.filter(pk=web.pk).update(physical_id=str(server.uuid))
    make_resource(stack, "twin", physical_id=str(server.uuid))
    with pytest.raises(Invalid, match=r"^Multiple resources were found with the physical ID \("):
        mark(server, True)


def test_server_with_a_task_state_or_a_pending_action_cannot_be_marked() -> None:
    server = make_server(node=make_node(), task_state="migrating")
    with pytest.raises(Conflict, match="while it is in task_state migrating"):
        mark(server, True)
    Server.objects.update(task_state=None)
    action = make_action("stop", target=str(server.uuid))
    with pytest.raises(Conflict, match=action):
        mark(server, True)


def test_rebuilding_a_server_clears_its_mark() -> None:
    server = make_server(node=make_node())
    mark(server, True)
    cloud().reboot_server(str(server.uuid))
    assert again(server).unhealthy_reason == MARKED
    cloud().rebuild_server(str(server.uuid))
    assert again(server).unhealthy_reason is None


@pytest.mark.parametrize(("wanted", "reason"), [("active", None), ("error", "slow")])
def test_resetting_a_server_to_active_clears_its_mark(wanted: str, reason: str | None) -> None:
    server = make_server(node=make_node())
    mark(server, True, "slow")
    cloud().reset_state(str(server.uuid), wanted)
    assert again(server).unhealthy_reason == reason


# Nodes of clusters


def member_with_server(**columns: Any) -> Node:
    return make_member(status="ACTIVE", server=make_server(node=make_node()), **columns)


def test_marked_node_is_in_error_and_its_cluster_in_warning(cloud_admin: Any) -> None:
    cluster = make_cluster(size=2)
    node = cluster.members()[1]
    mark(node, True, "slow")
    assert (state(node), state(cluster)[0]) == (("ERROR", "slow"), "WARNING")
    Node.objects.filter(pk=node.pk).update(physical_id=make_server().uuid)
    mark(again(node), False)
    assert (state(node), state(cluster)[0]) == (("ACTIVE", MARKED), "ACTIVE")


def test_marking_the_server_of_a_node_marks_the_node() -> None:
    node = member_with_server()
    assert mark(Server.objects.get(), True).object_id == node.uuid
    assert again(node).unhealthy_reason == MARKED


def test_clearing_a_node_without_a_server_keeps_it_in_error() -> None:
    node = make_member(status="ERROR")
    mark(node, True)
    mark(node, False, "never mind")
    assert state(node) == ("ERROR", "never mind")


def test_clearing_a_failed_node_without_a_mark_changes_nothing() -> None:
    node = make_member(status="ERROR", status_reason="No valid host was found.")
    mark(node, False)
    assert state(node) == ("ERROR", "No valid host was found.")


def test_check_of_a_node_keeps_its_mark_and_recovery_clears_it() -> None:
    node = member_with_server()
    mark(node, True, "slow")
    parameters = {"resource_id": str(node.uuid)}
    make("NODE_CHECK", parameters, ActionContext(is_derived=True)).execute()
    assert state(node) == ("ERROR", "Check: Node is not ACTIVE. It was marked unhealthy: slow")
    recovery = make(
        "NODE_RECOVER", {**parameters, "operation": "REBOOT", "check": True}, ActionContext(is_derived=True)
    )
    recovery.execute()
    assert (state(node)[0], again(node).unhealthy_reason) == ("ACTIVE", None)


@pytest.mark.parametrize("of_cluster", [True, False])
def test_node_locked_by_an_action_cannot_be_marked(of_cluster: bool) -> None:
    cluster = make_cluster(size=1)
    node = cluster.members()[0]
    action = make_action("CLUSTER_RECOVER")
    target: Cluster | Node = cluster if of_cluster else node
    take_lock(target, action)
    with pytest.raises(Conflict, match=action):
        mark(node, True)


def test_node_that_is_being_created_cannot_be_marked() -> None:
    with pytest.raises(Conflict, match="is INIT: it can be marked when it is settled"):
        mark(make_member(), True)
