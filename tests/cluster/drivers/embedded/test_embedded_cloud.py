"""The embedded cloud: capacity, the scheduler, duration, failures, and operations of killed processes."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from cluster.drivers.base import CloudError, NoValidHost, OperationFailed, ServerNotFound, cloud
from cluster.drivers.embedded import EmbeddedCloud
from cluster.drivers.embedded.cloud import MIGRATING
from cluster.drivers.ownership import acting_for
from cluster.drivers.rules import require_node
from cluster.drivers.scheduler import choose_destination
from cluster.models import ComputeNode, Server
from tests.builders import make_flavor, make_node, make_server

pytestmark = pytest.mark.django_db


class Stopped(BaseException):
    pass


def again(server: Server) -> Server:
    return Server.objects.get(pk=server.pk)


def migrate(server: Server, destination: str | None = None, **options: object) -> None:
    cloud().live_migrate(str(server.uuid), destination, **options)


@pytest.fixture
def server() -> Server:
    return make_server(node=make_node("source"), vcpus=4, memory=4096, disk=40)


@pytest.mark.parametrize(
    ("capacity", "reason"),
    [
        ({"vcpus": 3}, "small has 3 VCPUs free of 4 needed."),
        ({"memory": 4000}, "small has 4000 MB of memory free of 4096 needed."),
        ({"disk": 45, "disk_gb_reserved": 10}, "small has 35 GB of disk free of 40 needed."),
    ],
)
def test_node_without_capacity_refuses_a_server(server: Server, capacity: dict[str, int], reason: str) -> None:
    make_node("small", **capacity)
    with pytest.raises(NoValidHost) as caught:
        migrate(server, "small")
    assert str(caught.value) == f"No valid host was found. {reason}"
    assert again(server).task_state is None


def test_allocation_ratio_multiplies_the_capacity(server: Server) -> None:
    node = make_node("small", vcpus=2, vcpu_ratio=2.0)
    migrate(server, "small")
    assert again(server).node == node


def test_incoming_migration_reserves_capacity_on_the_destination(server: Server) -> None:
    node = make_node("small", vcpus=5)
    make_server("arriving", node=server.node, destination=node, task_state="migrating")
    with pytest.raises(NoValidHost, match="small has 3 VCPUs free of 4 needed"):
        migrate(server, "small")


def test_deleted_server_uses_no_capacity(server: Server) -> None:
    node = make_node("small", vcpus=5)
    Server.objects.filter(pk=make_server("gone", node=node).pk).soft_delete()
    migrate(server, "small")
    assert again(server).node == node


def test_scheduler_chooses_the_node_with_the_most_free_memory(server: Server) -> None:
    make_node("small", memory=8192)
    large = make_node("large", memory=65536)
    migrate(server)
    assert again(server).node == large


def test_use_by_node_equals_the_use_of_each_node(server: Server) -> None:
    growing = make_flavor("large", vcpus=8, memory=16384, disk=100)
    for number in range(3):
        node = make_node(f"compute{number}")
        make_server(f"here-{number}", node)
        make_server(f"growing-{number}", node, new_flavor=growing)
        make_server(f"arriving-{number}", server.node, destination=node)
    gone = make_server("gone", node)
    Server.objects.filter(pk=gone.pk).soft_delete()
    nodes = ComputeNode.objects.exclude(hostname="source").with_use()
    use = Server.objects.use_by_node(ComputeNode.objects.exclude(hostname="source"))
    assert [dict(use[node.pk]) for node in nodes] == [
        {"vcpus": node.used_vcpus, "memory": node.used_memory, "disk": node.used_disk} for node in nodes
    ]
    assert use[node.pk] == {"vcpus": 12, "memory": 20480, "disk": 140}


@pytest.mark.parametrize("hostname", [None, "compute0"])
def test_scheduler_query_count_does_not_depend_on_the_number_of_nodes(
    server: Server, hostname: str | None, django_assert_num_queries: Callable[[int], AbstractContextManager[object]]
) -> None:
    for number in range(5):
        make_node(f"compute{number}")
    with django_assert_num_queries(2):
        choose_destination(server, hostname)


@pytest.mark.parametrize("columns", [{"status": "disabled"}, {"state": "down"}, {"vcpus": 1}])
def test_scheduler_skips_nodes_that_are_disabled_down_or_full(server: Server, columns: dict[str, object]) -> None:
    make_node("unfit", **columns)
    with pytest.raises(NoValidHost, match=r"^No valid host was found\."):
        migrate(server)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"status": "disabled"}, "Destination node target is not in enabled state"),
        ({"state": "down"}, "Destination node target is down"),
    ],
)
def test_disabled_or_down_destination_is_refused(server: Server, columns: dict[str, object], reason: str) -> None:
    make_node("target", **columns)
    with pytest.raises(CloudError, match=reason):
        migrate(server, "target")


def test_migration_to_the_current_node_is_refused(server: Server) -> None:
    with pytest.raises(CloudError, match="is already on source"):
        migrate(server, "source")


def test_migrating_server_has_its_destination_and_task_state(server: Server) -> None:
    target = make_node("target")
    seen = []

    def look() -> None:
        row = again(server)
        seen.append((row.node, row.destination, row.task_state))

    migrate(server, "target", checkpoint=look)
    assert seen[0] == (server.node, target, "migrating")


def test_aborted_migration_leaves_the_server_on_its_node(server: Server) -> None:
    make_node("target")

    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        migrate(server, "target", checkpoint=stop)
    assert again(server).task_state == "migrating"
    cloud().abort_migration(str(server.uuid))
    row = again(server)
    assert (row.node, row.destination, row.task_state) == (server.node, None, None)


def test_server_deleted_during_a_migration_is_not_found(server: Server) -> None:
    make_node("target")
    with pytest.raises(ServerNotFound, match=f"Instance {server.uuid} not found"):
        migrate(server, "target", checkpoint=lambda: Server.objects.filter(pk=server.pk).soft_delete() and None)


def test_reconciled_operation_does_not_finish(server: Server) -> None:
    make_node("target")
    with pytest.raises(OperationFailed, match="was taken out of its operation migrating"):
        migrate(server, "target", checkpoint=lambda: cloud().reconcile(str(server.uuid)) and None)
    assert again(server).node == server.node


def test_failed_migration_releases_the_reserved_capacity(server: Server, settings: object) -> None:
    settings.EMBEDDED_CLOUD_FAILURE_RATE = 1
    make_node("target")
    with pytest.raises(OperationFailed):
        migrate(server, "target")
    row = again(server)
    assert (row.node, row.destination, row.task_state) == (server.node, None, None)


def test_operation_calls_the_checkpoint_for_its_configured_duration(server: Server, settings: object) -> None:
    settings.EMBEDDED_CLOUD_SECONDS = 0.15
    calls = []
    make_node("target")
    migrate(server, "target", checkpoint=lambda: calls.append(1))
    assert len(calls) >= 3


def test_disabling_an_unknown_host_is_refused() -> None:
    with pytest.raises(CloudError, match="nova-compute service far not found"):
        cloud().disable_compute_service("far")


def test_disabled_node_keeps_its_servers(server: Server) -> None:
    cloud().disable_compute_service("source", "new fans")
    assert ComputeNode.objects.get(servers=server).status == "disabled"


def test_reconciliation_by_another_owner_does_not_undo_an_operation(server: Server) -> None:
    make_node("target")
    seen = []

    def look() -> None:
        with acting_for("another"):
            cloud().reconcile(str(server.uuid))
        seen.append(again(server).task_state)

    with acting_for("one"):
        migrate(server, "target", checkpoint=look)
    assert set(seen) == {"migrating"}
    assert again(server).node.hostname == "target"


def test_operation_taken_over_by_another_owner_does_not_finish(server: Server) -> None:
    target = make_node("target")

    def replace() -> None:
        Server.objects.filter(pk=server.pk).update(operation_owner="another")

    with acting_for("one"), pytest.raises(OperationFailed, match="was taken out of its operation migrating"):
        migrate(server, "target", checkpoint=replace)
    assert again(server).destination == target


def test_operation_restarted_by_a_later_attempt_is_not_finished_by_the_earlier_one(server: Server) -> None:
    target = make_node("target")

    def begin_again() -> None:
        if again(server).operation_owner == "one/1":
            with acting_for("one", 2):
                cloud().reconcile(str(server.uuid))
                EmbeddedCloud().reserve(str(server.uuid), "target", MIGRATING, require_node)

    with acting_for("one", 1), pytest.raises(OperationFailed, match="was taken out of its operation migrating"):
        migrate(server, "target", checkpoint=begin_again)
    assert (again(server).destination, again(server).operation_owner) == (target, "one/2")


@pytest.mark.parametrize(("left_by", "task_state"), [(1, None), (2, None), (3, "migrating")])
def test_reconciliation_undoes_operations_of_the_same_and_earlier_attempts_only(
    server: Server, left_by: int, task_state: str | None
) -> None:
    Server.objects.filter(pk=server.pk).update(task_state="migrating", operation_owner=f"one/{left_by}")
    with acting_for("one", 2):
        cloud().reconcile(str(server.uuid))
    assert again(server).task_state == task_state


def test_failed_operation_does_not_reset_an_operation_of_another_owner(server: Server, settings: object) -> None:
    settings.EMBEDDED_CLOUD_FAILURE_RATE = 1
    make_node("target")

    def replace() -> None:
        Server.objects.filter(pk=server.pk).update(task_state="powering-off", operation_owner="another")

    with acting_for("one"), pytest.raises(OperationFailed):
        migrate(server, "target", checkpoint=replace)
    assert again(server).task_state == "powering-off"
