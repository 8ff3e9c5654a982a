"""The demonstration: a small cloud with a cluster, a stack and a recommended plan, for new users."""

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from audits.demonstration_cloud import make_current, read_topology
from audits.engine.engine import DecisionEngine
from audits.models import Audit, AuditTemplate
from audits.operations.audit_templates import create_audit_template
from audits.operations.creation import create_audit
from cluster.models import (
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
    StackStatus,
    StorageNode,
    Volume,
    VolumeType,
)
from cluster.policies.base import PolicyType
from cluster.stacks.changes import nested_template
from cluster.stacks.templates.templates import normalise
from cluster.topology.loading import load_topology
from plans.models import ActionPlan
from watcher_site import plugins
from watcher_site.database.locks import lock_table
from watcher_site.history import record
from watcher_site.refusals import Conflict

MAINTAINED = "compute-03"
# A server that is deleted after the plan was created, so that its migration is skipped.
DELETED = "ci-runner-6"
AT_WORK = {*ActionPlan.State} - ActionPlan.DELETABLE
# In the order of deletion: objects that refer to others come first.
KINDS: dict[str, Any] = {
    "balancing_pools": BalancingPool,
    "volumes": Volume,
    "pools": Pool,
    "storage_nodes": StorageNode,
    "volume_types": VolumeType,
    "servers": Server,
    "host_aggregates": HostAggregate,
    "compute_nodes": ComputeNode,
    "flavors": Flavor,
}
CLUSTER = "web"
CLUSTER_SIZE = 4
PROFILE: dict[str, Any] = {"flavor": "small", "metadata": {"tier": "front"}}
POLICY = "senlin.policy.deletion-1.1"
# The last digits of the UUIDs of its clusters, nodes, stacks and resources, which identify them even if users change
# their names. In version 1.0.0 these were the first digits, so that short UUIDs were equal.
MARK = "d3305bf1"
OWN = Q(uuid__endswith=MARK) | Q(uuid__range=(UUID(MARK + 24 * "0"), UUID(MARK + 24 * "f")))
STACK = "build"
PROJECT = "build"
RUNNERS = ("ci-runner-2", "ci-runner-3", "ci-runner-4")
MARKED, REASON = "ci-runner-4", "its jobs fail since its disk was full"
TEMPLATE: dict[str, Any] = {
    "description": "Where software is built, and kept",
    "resources": {
        "registry": {"type": "server", "properties": {"flavor": "medium"}},
        "artifacts": {"type": "server", "properties": {"flavor": "small"}, "depends_on": "registry"},
        "runners": {
            "type": "scaling_group",
            "properties": {"size": len(RUNNERS), "member": {"type": "server", "properties": {"flavor": "medium"}}},
            "depends_on": "registry",
        },
    },
}


@transaction.atomic
def load_demonstration() -> ActionPlan | None:
    """Fill an empty cloud, and run an audit that proposes to empty one of its compute nodes.

    Runs in one transaction. Returns None, without changes, if the cloud was ever filled.
    """
    lock_table(ComputeNode)
    if ComputeNode.objects.exists():
        return None
    return record_loading(fill_cloud(read_topology()), again=False)


@transaction.atomic
def load_demonstration_again() -> ActionPlan:
    """Restore the initial state of the demonstration's cloud, with a new plan. Accounts, audits and plans are kept.

    Raises:
        Conflict: the cloud contains other objects than those of the demonstration, or a plan is pending or running.
    """
    lock_table(ComputeNode)
    document = read_topology()
    for name in find_foreign_objects(document):
        raise Conflict(
            f"The cloud holds {name}, which is none of the demonstration's: nothing was changed. "
            "Load the demonstration into a database of its own."
        )
    for plan in ActionPlan.objects.filter(state__in=AT_WORK).present():
        raise Conflict(f"Action plan {plan.uuid} is {plan.state}: wait for its end, or cancel it.")
    delete_clusters()
    delete_stacks()
    for model in KINDS.values():
        model.objects.all().delete()
    return record_loading(fill_cloud(document), again=True)


def record_loading(plan: ActionPlan, again: bool) -> ActionPlan:
    record("demonstration.load", details={"again": again, "action_plan": plan.uuid})
    return plan


def find_foreign_objects(document: dict[str, Any]) -> Iterator[str]:
    """Yield the names of present objects that do not belong to the demonstration."""
    yield from foreign_clusters()
    yield from foreign_stacks()
    servers = servers_made_for(Node) | servers_made_for(StackResource)
    for collection, model in KINDS.items():
        uuids = {UUID(item["uuid"]) for item in document[collection]} | servers
        yield from (f"{model._meta.verbose_name} {row}" for row in model.objects.present() if row.uuid not in uuids)


def fill_cloud(document: dict[str, Any]) -> ActionPlan:
    load_topology(document)
    make_cluster()
    make_stack()
    make_current()
    make_template(
        "try-out",
        description="Says hello and sleeps: harmless, to see how audits and plans work.",
        goal="dummy",
        strategy="dummy",
        default_parameters={"para1": 5, "para2": "Good morning"},
    )
    template = make_template(
        f"empty-{MAINTAINED}",
        description=f"Moves every server away from {MAINTAINED}, so that its memory can be replaced.",
        goal="cluster_maintaining",
        strategy="host_maintenance",
        default_parameters={"maintenance_node": MAINTAINED},
    )
    plan = run_audit(make_maintenance_audit(template))
    Server.objects.filter(name=DELETED).soft_delete()
    return plan


def make_template(name: str, **attributes: Any) -> AuditTemplate:
    """Return the template with this name. An existing one is not changed."""
    existing = AuditTemplate.objects.present().filter(name=name).first()
    return existing or create_audit_template(name=name, **attributes)


def make_maintenance_audit(template: AuditTemplate) -> Audit:
    name = f"Maintenance of {MAINTAINED}"
    earlier = Audit.objects.filter(name__startswith=name).count()
    return create_audit(
        audit_type=Audit.Type.ONESHOT,
        name=f"{name}, no. {earlier + 1}" if earlier else name,
        audit_template_uuid=str(template.uuid),
        # Users may have changed the template.
        parameters={"maintenance_node": MAINTAINED},
        force=True,
    )


def run_audit(audit: Audit) -> ActionPlan:
    """Run one audit in a separate engine; other due audits are left to the running engines."""
    engine = DecisionEngine()
    claimed = engine.claim(Audit.objects.filter(pk=audit.pk))
    if claimed:
        engine.run_audit(claimed)
    engine.service.retire()
    return ActionPlan.objects.get(audit=audit)


def make_cluster() -> Cluster:
    """Create a cluster whose nodes have the first web servers. Existing profiles and policies are not changed.

    The caller has begun a transaction.
    """
    profile, _ = Profile.objects.get_or_create(name="web server", deleted_at=None, defaults={"spec": PROFILE})
    cluster = Cluster.objects.create(
        uuid=make_uuid(),
        name=CLUSTER,
        profile=profile,
        min_size=2,
        max_size=8,
        desired_capacity=CLUSTER_SIZE,
        next_index=CLUSTER_SIZE + 1,
        metadata={"team": "web shop"},
        status=Cluster.Status.ACTIVE,
        init_at=timezone.now(),
    )
    Node.objects.bulk_create(make_member(cluster, index) for index in range(1, CLUSTER_SIZE + 1))
    if policy_type := plugins.load("POLICY_TYPES").get(POLICY):
        attach(cluster, policy_type)
    return cluster


def make_member(cluster: Cluster, index: int) -> Node:
    name = f"{CLUSTER}-{index}"
    server = Server.objects.present().get(name=name)
    return Node(
        uuid=make_uuid(),
        name=name,
        profile=cluster.profile,
        cluster=cluster,
        index=index,
        status=Node.Status.ACTIVE,
        physical_id=server.uuid,
        init_at=cluster.init_at,
    )


def make_uuid() -> UUID:
    return UUID(uuid4().hex[: -len(MARK)] + MARK)


def attach(cluster: Cluster, policy_type: type[PolicyType]) -> None:
    policy, _ = Policy.objects.get_or_create(
        name="oldest first", deleted_at=None, defaults={"type": POLICY, "spec": {"criteria": "OLDEST_FIRST"}}
    )
    PolicyBinding.objects.create(cluster=cluster, policy=policy, priority=policy_type.priority)


def find_clusters() -> Any:
    """Return the present clusters of the demonstration."""
    return Cluster.objects.present().filter(OWN)


def find_nodes() -> Any:
    """Return the present nodes of the demonstration, and the nodes that were created for its cluster."""
    return Node.objects.present().filter(OWN | Q(cluster__in=find_clusters()))


def foreign_clusters() -> Iterator[str]:
    """Yield the clusters and nodes that users created."""
    for records in (find_clusters(), find_nodes()):
        foreign = records.model.objects.present().exclude(pk__in=records)
        yield from (f"{records.model._meta.verbose_name} {row}" for row in foreign)


def delete_clusters() -> None:
    """Delete the cluster and the nodes of the demonstration without deleting their servers. Actions are kept."""
    find_nodes().soft_delete()
    PolicyBinding.objects.filter(cluster__in=find_clusters()).soft_delete()
    find_clusters().soft_delete()


def make_stack() -> Stack:
    """Create a stack whose resources are servers of the cloud. The caller has begun a transaction."""
    template = normalise(TEMPLATE)
    stack = add_stack(STACK, template)
    for name, definition in template["resources"].items():
        if definition["type"] == StackResource.Type.SERVER:
            add_server(stack, name, definition, name)
        else:
            add_group(stack, name, definition)
    return stack


def add_stack(name: str, template: Mapping[str, Any], **within: Any) -> Stack:
    stack: Stack = Stack.objects.create(
        uuid=make_uuid(),
        name=name,
        template=template,
        project_id=PROJECT,
        status=StackStatus.CREATE_COMPLETE,
        status_reason="CREATE completed successfully",
        **within,
    )
    return stack


def add_group(stack: Stack, name: str, definition: dict[str, Any]) -> None:
    holder = add_resource(stack, name, definition)
    within = add_stack(
        f"{stack.name}-{name}", nested_template(definition, RUNNERS), root=stack, parent_resource=holder
    )
    StackResource.objects.filter(pk=holder.pk).update(physical_id=str(within.uuid))
    for member, properties in within.template["resources"].items():
        add_server(within, member, properties, member)


def add_server(stack: Stack, name: str, definition: dict[str, Any], server: str) -> None:
    resource = add_resource(stack, name, definition, physical_id=str(Server.objects.present().get(name=server).uuid))
    if server == MARKED:
        resource.mark_unhealthy(REASON)
        resource.save_state()


def add_resource(stack: Stack, name: str, definition: dict[str, Any], **columns: Any) -> StackResource:
    resource: StackResource = StackResource.objects.create(
        uuid=make_uuid(),
        stack=stack,
        name=name,
        type=definition["type"],
        properties=definition["properties"],
        depends_on=definition["depends_on"],
        status=StackStatus.CREATE_COMPLETE,
        status_reason="CREATE completed successfully",
        made_at=timezone.now(),
        **columns,
    )
    return resource


def find_stacks() -> Any:
    """Return the present stacks of the demonstration, including nested ones."""
    return Stack.objects.present().filter(OWN | Q(root__in=Stack.objects.filter(OWN)))


def foreign_stacks() -> Iterator[str]:
    """Yield the stacks that users created."""
    yield from (f"stack {stack}" for stack in Stack.objects.present().roots().exclude(pk__in=find_stacks()))


def delete_stacks() -> None:
    """Delete the stack of the demonstration without deleting its servers. Its actions are kept."""
    StackResource.objects.filter(stack__in=find_stacks()).soft_delete()
    find_stacks().soft_delete()


def servers_made_for(model: type[Node] | type[StackResource]) -> set[UUID]:
    """Return the UUIDs of the servers that were created for rows of a model. Their tokens begin with its UUID."""
    rows = {str(uuid) for uuid in model.objects.values_list("uuid", flat=True)}
    created = Server.objects.exclude(token="").values_list("uuid", "token")
    return {uuid for uuid, token in created if token.partition("/")[0] in rows}
