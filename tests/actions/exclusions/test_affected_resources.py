"""Affected resources: the declaration of each action type, compared with its changes of the cloud."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from actions.exclusions.matching import find_affected
from actions.exclusions.targets import KINDS
from actions.graph.proposals import ProposedAction
from actions.models import Action
from cluster.drivers.base import load_driver, using_cloud
from cluster.drivers.ownership import OWNER
from cluster.models import ComputeNode, Node, Server
from plans.planning.proposals import propose
from tests.actions.types.clusters import builders as clusters
from tests.actions.types.stacks import builders as stacks
from tests.builders import (
    make_cluster,
    make_flavor,
    make_member,
    make_node,
    make_policy,
    make_pool,
    make_profile,
    make_server,
    make_volume,
)
from tests.plans.inline import run_waiting
from watcher_site import plugins

pytestmark = pytest.mark.django_db

ON_SERVERS = {
    *("build_server", "rebuild_server", "reset_state", "delete_server", "live_migrate", "cold_migrate"),
    *("stop", "start", "reboot_server", "resize", "evacuate"),
}
ON_HOSTS = {"enable_compute_service", "disable_compute_service", "power_on", "power_off"}
ON_VOLUMES = {"migrate_volume", "retype_volume"}
TO_HOSTS = {"live_migrate", "cold_migrate", "evacuate"}


class Recorder:
    """The embedded cloud, which records, by action type, each resource that an action changes without declaring it."""

    def __init__(self) -> None:
        self.driver = load_driver()
        self.changed: set[tuple[str, str]] = set()
        self.undeclared: set[tuple[str, str, str]] = set()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.driver, name)

        def call(*arguments: Any, **options: Any) -> Any:
            for kind, identifier in changed_by(name, arguments):
                self.note(name, kind, identifier)
            return method(*arguments, **options)

        return call if callable(method) else method

    def note(self, method: str, kind: str, identifier: str) -> None:
        action = Action.objects.get(uuid=OWNER.get().partition("/")[0])
        declared = find_affected([action], KINDS)[action.uuid].get(kind, {})
        self.changed.add((action.action_type, method))
        if identifier not in (declared or {action.target: ""} if kind == "volumes" else declared):
            self.undeclared.add((action.action_type, method, kind))


def changed_by(method: str, arguments: tuple[Any, ...]) -> Iterator[tuple[str, str]]:
    """Yield the kinds and identifiers of the resources that a call of the cloud changes."""
    if method in ON_SERVERS:
        yield "servers", str(arguments[0])
    if method in ON_HOSTS:
        node = ComputeNode.objects.filter(hostname=arguments[0]).first() or ComputeNode.objects.get(uuid=arguments[0])
        yield "compute_nodes", node.hostname
    if method in ON_VOLUMES:
        yield "volumes", str(arguments[0])
    if method in TO_HOSTS and len(arguments) > 1 and arguments[1]:
        yield "compute_nodes", arguments[1]
    if method == "create_server" and arguments[0].host:
        yield "compute_nodes", arguments[0].host


def run(action_type: str, **parameters: Any) -> None:
    propose([ProposedAction(action_type, parameters)]).launch()
    run_waiting()


def run_actions_without_a_resource() -> None:
    run("nop", message="hello")
    run("sleep", duration=0)


def run_server_actions() -> None:
    server = str(make_server("web-1", make_node("compute1")).uuid)
    node = make_node("compute2")
    moved = {"resource_id": server, "migration_type": "live", "source_node": "compute1"}
    run("migrate", **moved, destination_node="compute2")
    run("resize", resource_id=server, flavor="small")
    run("stop", resource_id=server)
    run("rebuild", resource_id=server)
    run("reset_state", resource_id=server, state="error")
    run("delete_server", resource_id=server)
    run("build", resource_id=str(make_server("web-2", state="building").uuid))
    failed = make_node("failed", state="down", power_state="off", status="disabled")
    left = str(make_server("web-3", failed).uuid)
    run("evacuate", resource_id=left, source_node="failed", destination_node="compute1")
    other = str(make_node("compute3").uuid)
    run("change_nova_service_state", resource_id=other, resource_name="compute2", state="disabled")
    run("change_node_power_state", resource_id=str(node.uuid), state="off")


def run_volume_actions() -> None:
    volume = make_volume(pool=make_pool("a@lvm#one"))
    make_pool("b@lvm#two")
    run("volume_migrate", resource_id=str(volume.uuid), migration_type="migrate", destination_node="b@lvm#two")


def run_cluster_actions() -> None:
    cluster = clusters.create_cluster(2)
    alone = make_member("alone", profile=cluster.profile)
    for kind, inputs in (
        ("CLUSTER_SCALE_OUT", {}),
        ("CLUSTER_SCALE_IN", {}),
        ("CLUSTER_RESIZE", {"min_size": 1}),
        ("CLUSTER_CHECK", {}),
        ("CLUSTER_RECOVER", {"check": True}),
        ("CLUSTER_UPDATE", {"new_profile_id": str(make_profile("larger", "larger").uuid)}),
    ):
        clusters.run(kind, cluster, **inputs)
    clusters.run("NODE_CREATE", alone)
    clusters.run("NODE_UPDATE", alone, name="renamed")
    clusters.run("NODE_JOIN", alone, cluster_id=str(cluster.uuid))
    clusters.run("NODE_LEAVE", alone)
    clusters.run("CLUSTER_ADD_NODES", cluster, nodes=[str(alone.uuid)])
    clusters.run("CLUSTER_DEL_NODES", cluster, nodes=[str(alone.uuid)], destroy_after_deletion=True)
    first = Node.objects.present().filter(cluster=cluster).first()
    for operation in ("REBOOT", "REBUILD", "RECREATE"):
        Server.objects.filter(uuid=first.physical_id).update(state="error")
        Node.objects.filter(pk=first.pk).update(status="ERROR")
        clusters.run("NODE_RECOVER", first, operation=operation)
        first.refresh_from_db()
    policy = {"policy_id": str(make_policy("grow").uuid)}
    clusters.run("CLUSTER_ATTACH_POLICY", cluster, **policy)
    clusters.run("CLUSTER_UPDATE_POLICY", cluster, **policy, enabled=False)
    clusters.run("CLUSTER_DETACH_POLICY", cluster, **policy)
    clusters.run("CLUSTER_DELETE", cluster)
    empty = make_cluster("empty")
    clusters.run("CLUSTER_CREATE", empty)


def run_stack_actions() -> None:
    stack = stacks.create_by_action(web=stacks.server(), db=stacks.server())
    stacks.mark(stacks.part(stack, "web"))
    stacks.run("update_stack", stack, template=stacks.template(web=stacks.server(), db=stacks.server("larger")))
    stacks.run("delete_stack", stack)


SCENARIOS: list[Callable[[], None]] = [
    *(run_actions_without_a_resource, run_server_actions, run_volume_actions, run_cluster_actions, run_stack_actions)
]


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    make_node("large", vcpus=100, memory=400_000, disk=10_000)
    make_flavor("small", disk=20)
    make_flavor("larger", disk=40)
    recorder = Recorder()
    with using_cloud(recorder):  # type: ignore[arg-type]
        yield recorder


def test_every_action_type_declares_each_resource_that_it_changes_in_the_cloud(recorder: Recorder) -> None:
    executed: set[str] = set()
    for scenario in SCENARIOS:
        scenario()
        executed |= set(Action.objects.filter(state__in=Action.CARRIED_OUT).values_list("action_type", flat=True))
    assert executed == set(plugins.load("ACTION_TYPES"))
    assert recorder.undeclared == set()
    methods = {method for _, method in recorder.changed}
    assert methods >= {"disable_compute_service", "power_off", "live_migrate", "migrate_volume", "delete_server"}


@pytest.mark.parametrize("name", sorted(plugins.load("ACTION_TYPES")))
@pytest.mark.parametrize("parameters", [{}, {"resource_id": 7, "cluster_id": [1]}, {"resource_id": "x" * 300}])
def test_every_action_type_affects_nothing_for_invalid_parameters(name: str, parameters: dict[str, Any]) -> None:
    actions = [ProposedAction(name, parameters)]
    assert find_affected(actions, KINDS)[actions[0].uuid] == {}
