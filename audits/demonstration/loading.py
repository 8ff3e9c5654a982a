"""A small cloud with a plan on it, for people who have just arrived."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.db import transaction

from audits.demonstration.cluster import delete_clusters, make_cluster, servers_of_nodes, strange_clusters
from audits.demonstration.stack import delete_stacks, make_stack, servers_of_resources, strange_stacks
from audits.demonstration_cloud.metrics import make_current
from audits.demonstration_cloud.topology import read
from audits.engine.engine import DecisionEngine
from audits.models import Audit, AuditTemplate
from audits.operations.audit_templates import create_audit_template
from audits.operations.creation import create_audit
from cluster.models import (
    BalancingPool,
    ComputeNode,
    Flavor,
    HostAggregate,
    Pool,
    Server,
    StorageNode,
    Volume,
    VolumeType,
)
from cluster.topology.loading import load_topology
from plans.models import ActionPlan
from watcher_site.database.locks import lock_table
from watcher_site.history import record
from watcher_site.refusals import Conflict

MAINTAINED = "compute-03"
# It disappears after the plan was made, so that its migration skips itself.
DELETED = "ci-runner-6"


AT_WORK = {*ActionPlan.State} - ActionPlan.DELETABLE
# What points at others comes before them.
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


@transaction.atomic
def load_demonstration() -> ActionPlan | None:
    """Fill an empty cloud, and have a decision engine recommend how to empty one of its compute nodes.

    All of it, or nothing. A cloud that was ever filled is left alone, and the answer is None.
    """
    lock_table(ComputeNode)
    if ComputeNode.objects.exists():
        return None
    return record_loading(fill(read()), again=False)


@transaction.atomic
def load_demonstration_again() -> ActionPlan:
    """Bring the demonstration's cloud back to where it began, with a plan anew. Accounts, audits and plans stay.

    Raises:
        Conflict: the cloud holds something else than the demonstration, or a plan is at work on it.
    """
    lock_table(ComputeNode)
    document = read()
    for name in strangers(document):
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
    return record_loading(fill(document), again=True)


def record_loading(plan: ActionPlan, again: bool) -> ActionPlan:
    record("demonstration.load", details={"again": again, "action_plan": plan.uuid})
    return plan


def strangers(document: dict[str, Any]) -> Iterator[str]:
    """Yield what the demonstration did not bring, and what is there still: what was deleted is in nobody's way."""
    yield from strange_clusters()
    yield from strange_stacks()
    made = servers_of_nodes() | servers_of_resources()
    for collection, model in KINDS.items():
        own = {UUID(item["uuid"]) for item in document[collection]} | made
        yield from (f"{model._meta.verbose_name} {row}" for row in model.objects.present() if row.uuid not in own)


def fill(document: dict[str, Any]) -> ActionPlan:
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
    plan = run(make_maintenance_audit(template))
    Server.objects.filter(name=DELETED).soft_delete()
    return plan


def make_template(name: str, **attributes: Any) -> AuditTemplate:
    """Return the template of this name, as it is if people have it already."""
    existing = AuditTemplate.objects.present().filter(name=name).first()
    return existing or create_audit_template(name=name, **attributes)


def make_maintenance_audit(template: AuditTemplate) -> Audit:
    name = f"Maintenance of {MAINTAINED}"
    earlier = Audit.objects.filter(name__startswith=name).count()
    return create_audit(
        audit_type=Audit.Type.ONESHOT,
        name=f"{name}, no. {earlier + 1}" if earlier else name,
        audit_template_uuid=str(template.uuid),
        # People may have changed the template since.
        parameters={"maintenance_node": MAINTAINED},
        force=True,
    )


def run(audit: Audit) -> ActionPlan:
    """Answer one audit by an engine of its own: whatever else waits is for the engines that serve."""
    engine = DecisionEngine()
    claimed = engine.claim(Audit.objects.filter(pk=audit.pk))
    if claimed:
        engine.answer(claimed)
    engine.service.retire()
    return ActionPlan.objects.get(audit=audit)
