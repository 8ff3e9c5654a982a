"""Builders of rows for tests."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from django.utils import timezone

from actions.models import Action, ActionEvent, ActionParent, InstanceAction
from audits.models import Audit, Goal, Strategy
from cluster.models import (
    BalancingMember,
    BalancingPool,
    Cluster,
    ComputeNode,
    Flavor,
    HostAggregate,
    Node,
    Policy,
    PolicyBinding,
    Pool,
    Profile,
    Server,
    Stack,
    StackResource,
    StorageNode,
    Volume,
    VolumeAttachment,
    VolumeType,
)
from plans.models import ActionPlan
from watcher_site import plugins


def make_strategy(name: str = "dummy", goal: str = "dummy") -> Strategy:
    found_goal, _ = Goal.objects.get_or_create(name=goal, deleted_at=None, defaults={"display_name": goal.title()})
    strategy, _ = Strategy.objects.get_or_create(
        name=name, deleted_at=None, defaults={"display_name": name.title(), "goal": found_goal}
    )
    return strategy


def make_audit(name: str = "an audit", **columns: Any) -> Audit:
    strategy = columns.pop("strategy", None) or make_strategy()
    columns = {"audit_type": Audit.Type.ONESHOT, "goal": strategy.goal, "strategy": strategy, **columns}
    return Audit.objects.create(name=name, **columns)


def make_plan(graph: Mapping[str, Iterable[str]] | None = None, **columns: Any) -> ActionPlan:
    """Make a plan of nop actions: in ``make_plan({"a": [], "b": ["a"]})``, b waits for a.

    The names are the actions' messages, by which ``action(plan, "b")`` finds an action. The columns set, for example,
    ``state="ONGOING"`` in place of RECOMMENDED.
    """
    plan = ActionPlan.objects.create(**columns)
    actions = {
        name: Action(action_plan=plan, action_type="nop", input_parameters={"message": name}) for name in graph or {}
    }
    Action.objects.bulk_create(actions.values())
    ActionParent.objects.bulk_create(
        ActionParent(child=actions[name], parent=actions[parent])
        for name, parents in (graph or {}).items()
        for parent in parents
    )
    return plan


def action(plan: ActionPlan, name: str) -> Action:
    return Action.objects.get(action_plan=plan, input_parameters__message=name)


def make_node(hostname: str = "compute1", **columns: Any) -> ComputeNode:
    return ComputeNode.objects.create(**{"hostname": hostname, "vcpus": 16, "memory": 32768, "disk": 500, **columns})


def make_server(name: str = "web-1", node: ComputeNode | None = None, **columns: Any) -> Server:
    return Server.objects.create(**{"name": name, "node": node, "vcpus": 2, "memory": 2048, "disk": 20, **columns})


def make_operation(server: Server, verb: str = "stop", *events: str, **columns: Any) -> InstanceAction:
    """Make an instance action of a server and its action, with an event for each result, one hour apart."""
    done = Action.objects.create(
        action_plan=columns.pop("plan", None) or make_plan(),
        action_type="stop",
        input_parameters={"resource_id": str(server.uuid)},
    )
    begun = columns.get("start_time") or timezone.now()
    ActionEvent.objects.bulk_create(
        ActionEvent(
            action=done,
            event="execute",
            start_time=begun + timedelta(hours=hour),
            finish_time=begun + timedelta(hours=hour, minutes=1),
            result=result,
            details=f"It was {result}.",
            host="worker-1",
        )
        for hour, result in enumerate(events)
    )
    columns = {"request_id": f"req-{done.uuid}", **columns}
    return InstanceAction.objects.create(server_uuid=server.uuid, action=done, verb=verb, **columns)


def make_aggregate(number: int, name: str, *nodes: ComputeNode, **columns: Any) -> HostAggregate:
    aggregate = HostAggregate.objects.create(id=number, name=name, **columns)
    aggregate.nodes.set(nodes)
    return aggregate


def make_flavor(name: str = "small", **columns: Any) -> Flavor:
    return Flavor.objects.create(**{"name": name, "vcpus": 1, "memory": 1024, "disk": 10, **columns})


def make_profile(name: str = "a profile", flavor: str = "small", **columns: Any) -> Profile:
    """Make a profile, and its flavor if it does not exist."""
    if not Flavor.objects.present().filter(name=flavor).exists():
        make_flavor(flavor)
    return Profile.objects.create(**{"name": name, "spec": {"flavor": flavor}, **columns})


def make_member(name: str = "web", *, status: str = "INIT", server: Server | None = None, **columns: Any) -> Node:
    """Make a node of a cluster, and its profile if none exists. `make_node` makes a compute node."""
    profile = columns.pop("profile", None) or Profile.objects.present().first() or make_profile()
    return Node.objects.create(
        **{"name": name, "profile": profile, "status": status, "physical_id": server and server.uuid, **columns}
    )


def make_cluster(name: str = "a cluster", *, size: int = 0, status: str = "ACTIVE", **columns: Any) -> Cluster:
    """Make a cluster of ``size`` ACTIVE members without servers, and its profile if none exists."""
    profile = columns.pop("profile", None) or Profile.objects.present().first() or make_profile()
    values = {"desired_capacity": size, "next_index": size + 1, **columns}
    cluster = Cluster.objects.create(name=name, profile=profile, status=status, **values)
    for index in range(1, size + 1):
        make_member(f"{name}-{index}", status="ACTIVE", profile=profile, cluster=cluster, index=index)
    return cluster


def make_policy(name: str = "a policy", type: str = "", **columns: Any) -> Policy:
    return Policy.objects.create(name=name, type=type, **columns)


def make_binding(cluster: Cluster, type: str, spec: Mapping[str, Any] | None = None, **columns: Any) -> PolicyBinding:
    """Bind a new policy of a type to a cluster, with the priority of its type."""
    policy = make_policy(f"{type} {Policy.objects.count()}", type, spec=spec or {})
    priority = plugins.load("POLICY_TYPES")[type].priority
    return PolicyBinding.objects.create(**{"cluster": cluster, "policy": policy, "priority": priority, **columns})


def make_stack(name: str = "shop", holder: StackResource | None = None, **columns: Any) -> Stack:
    """Make a stack, nested in the resource ``holder`` if one is given."""
    columns = {"template": {"version": 1, "description": "", "resources": {}}, **columns}
    if holder is None:
        return Stack.objects.create(name=name, **columns)
    stack = Stack.objects.create(name=name, root_id=holder.stack.root_key, parent_resource=holder, **columns)
    StackResource.objects.filter(pk=holder.pk).update(physical_id=str(stack.uuid))
    return stack


def make_resource(stack: Stack, name: str = "web", **columns: Any) -> StackResource:
    return StackResource.objects.create(stack=stack, name=name, **{"type": "server", **columns})


def make_volume_type(name: str = "fast", **columns: Any) -> VolumeType:
    return VolumeType.objects.create(name=name, **columns)


def make_pool(name: str = "a@lvm#one", *, volume_types: Iterable[VolumeType] = (), **columns: Any) -> Pool:
    """Make an empty pool of 100 GB, and its storage node if it does not exist."""
    node, _ = StorageNode.objects.get_or_create(host=name.partition("#")[0], deleted_at=None)
    node.volume_types.add(*volume_types)
    pool = Pool(**{"name": name, "storage_node": node, "total_capacity_gb": 100, **columns})
    pool.set_usage(0, 0)
    pool.save()
    return pool


def make_balancing_pool(name: str = "web", *members: Server, **columns: Any) -> BalancingPool:
    """Make a pool of the embedded load balancer, whose members all have these columns."""
    pool = BalancingPool.objects.create(name=name)
    for server in members:
        BalancingMember.objects.create(pool=pool, server=server, **{"port": 80, **columns})
    return pool


def make_volume(
    name: str = "data", pool: Pool | None = None, *, attached_to: Iterable[Server] = (), **columns: Any
) -> Volume:
    """Make a volume of 10 GB, and update the usage of its pool."""
    status = Volume.Status.IN_USE if attached_to else Volume.Status.AVAILABLE
    volume: Volume = Volume.objects.create(**{"name": name, "pool": pool, "size": 10, "status": status, **columns})
    VolumeAttachment.objects.bulk_create(VolumeAttachment(volume=volume, server=server) for server in attached_to)
    for held in Pool.objects.filter(pk__in=filter(None, [volume.pool_id, volume.destination_id])):
        held.set_usage(*Volume.objects.held_by([held])[held.pk])
        held.save()
    return volume
