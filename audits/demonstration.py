"""A small cloud with a plan on it, for people who have just arrived."""

from pathlib import Path

from django.db import transaction

from audits.audit_templates import create_audit_template
from audits.creation import create_audit
from audits.engine import DecisionEngine
from audits.models import Audit
from cluster.json_lines import parse
from cluster.loading import load_topology
from cluster.models import ComputeNode, Server
from plans.models import ActionPlan
from watcher_site.locks import lock_table

TOPOLOGY = Path(__file__).with_name("demonstration.json")
MAINTAINED = "compute-03"
# It disappears after the plan was made, so that its migration skips itself.
DELETED = "ci-runner-6"


@transaction.atomic
def load_demonstration() -> ActionPlan | None:
    """Fill an empty cloud, and have a decision engine recommend how to empty one of its compute nodes.

    All of it, or nothing. A cloud that was ever filled is left alone, and the answer is None.
    """
    lock_table(ComputeNode)
    if ComputeNode.objects.exists():
        return None
    load_topology(parse(TOPOLOGY.read_bytes())[1])
    plan = run(make_audit())
    Server.objects.filter(name=DELETED).soft_delete()
    return plan


def make_audit() -> Audit:
    create_audit_template(
        name="try-out",
        description="Says hello and sleeps: harmless, to see how audits and plans work.",
        goal="dummy",
        strategy="dummy",
        default_parameters={"para1": 5, "para2": "Good morning"},
    )
    template = create_audit_template(
        name=f"empty-{MAINTAINED}",
        description=f"Moves every server away from {MAINTAINED}, so that its memory can be replaced.",
        goal="cluster_maintaining",
        strategy="host_maintenance",
        default_parameters={"maintenance_node": MAINTAINED},
    )
    return create_audit(
        audit_type=Audit.Type.ONESHOT,
        name=f"Maintenance of {MAINTAINED}",
        audit_template_uuid=str(template.uuid),
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
