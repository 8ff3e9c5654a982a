"""The rows of a large cloud for the console: 100,000 actions in 1,000 plans, 2,000 servers on 100 nodes.

The user of the benchmark is a member of the project that owns all servers, clusters and stacks, so that the pages of
a project have as many rows as those of all projects.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice, pairwise
from typing import Any
from uuid import uuid4

from django.utils import timezone

from actions.models import Action, ActionEvent, ActionParent
from actions.models.exclusions import Exclusion
from audits.models import Audit, Strategy
from cluster.models import Cluster, ComputeNode, HostAggregate, Node, Policy, Pool, Profile, Server, Stack, Volume
from plans.models import ActionPlan, EfficacyIndicator
from tests.benchmarks.rows import NAME
from tests.builders import make_flavor, make_pool, make_profile, make_resource
from watcher_site.accounts.projects import add_member
from watcher_site.models import HistoryEntry, Service

PLANS, ACTIONS, SERVERS, NODES = 1000, 100_000, 2000, 100
PROJECT = "acme"
# The plans whose own pages are measured, and their states: what can still be pruned has more controls.
SIZES = (10, 100, 300, 1000, 10_000)
# The size of a plan that ended, whose timeline is measured.
ENDED = 1000
DAYS = 90
BATCH = 5000
PLAN_STATES = ["SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "FAILED", "CANCELLED", "SUPERSEDED", "RECOMMENDED"]
FINAL = {"SUCCEEDED": "SUCCEEDED", "FAILED": "FAILED", "CANCELLED": "CANCELLED", "SUPERSEDED": "CANCELLED"}


def fill() -> list[ActionPlan]:
    """Make all rows, and return the plans of `SIZES` and the one of `ENDED`."""
    now = timezone.now()
    add_member(NAME, PROJECT)
    large = fill_plans(now, fill_cloud())
    HistoryEntry.objects.bulk_create(
        HistoryEntry(
            user="benchmark",
            deed="action_plan.start",
            object_type="action_plan",
            object_uuid=uuid4(),
            object_name="a plan of the benchmark",
            created_at=now - timedelta(minutes=number),
        )
        for number in range(10_000)
    )
    Exclusion.objects.bulk_create(
        Exclusion(name=f"exclusion-{number}", owner="benchmark", action_types=["migrate"], targets={})
        for number in range(50)
    )
    for name in (Service.APPLIER, Service.DECISION_ENGINE):
        Service.objects.create(name=name, host="benchmark", last_seen_up=now)
    return large


def fill_cloud() -> list[Server]:
    nodes = ComputeNode.objects.bulk_create(
        ComputeNode(hostname=host_of(number), vcpus=64, memory=262_144, disk=4000, vcpu_ratio=4)
        for number in range(NODES)
    )
    for number in range(5):
        aggregate = HostAggregate.objects.create(id=9000 + number, name=f"aggregate-{number}")
        aggregate.nodes.set(nodes[number::5])
    servers = Server.objects.bulk_create(
        Server(
            name=f"server-{number:04}",
            project_id=PROJECT,
            node=nodes[number % NODES],
            destination=nodes[(number + 1) % NODES] if number % 50 == 0 else None,
            vcpus=4,
            memory=8192,
            disk=40,
            unhealthy_reason="It does not answer." if number % 100 == 0 else None,
        )
        for number in range(SERVERS)
    )
    make_flavor("large")
    profile = make_profile("large", "large")
    clusters = Cluster.objects.bulk_create(
        Cluster(name=f"cluster-{number}", project_id=PROJECT, profile=profile, status="ACTIVE", desired_capacity=20)
        for number in range(50)
    )
    Node.objects.bulk_create(
        Node(
            name=f"member-{number}",
            project_id=PROJECT,
            profile=profile,
            cluster=clusters[number % 50],
            index=number // 50 + 1,
            status="ACTIVE",
            physical_id=servers[number].uuid,
        )
        for number in range(1000)
    )
    Policy.objects.bulk_create(
        Policy(name=f"policy-{number}", type="senlin.policy.scaling-1.0") for number in range(50)
    )
    Profile.objects.bulk_create(Profile(name=f"profile-{number}", spec={"flavor": "large"}) for number in range(50))
    template = {"version": 1, "description": "", "resources": {}}
    for number in range(50):
        stack = Stack.objects.create(
            name=f"stack-{number}", project_id=PROJECT, template=template, status="CREATE_COMPLETE"
        )
        for place in range(10):
            make_resource(stack, f"web-{place}", status="CREATE_COMPLETE", physical_id=str(servers[place].uuid))
    pools = [make_pool(f"large@lvm#{number}") for number in range(5)]
    Pool.objects.filter(pk__in=[pool.pk for pool in pools]).update(total_volumes=100)
    Volume.objects.bulk_create(
        Volume(name=f"volume-{number}", pool=pools[number % 5], size=10, status="available") for number in range(500)
    )
    return servers


def host_of(number: int) -> str:
    return f"large-{number % NODES:03}"


def fill_plans(now: datetime, servers: list[Server]) -> list[ActionPlan]:
    strategy = Strategy.objects.present().get(name="dummy")
    audits = Audit.objects.bulk_create(
        Audit(
            name=f"audit-{number}",
            audit_type=Audit.Type.ONESHOT,
            goal=strategy.goal,
            strategy=strategy,
            state="SUCCEEDED",
        )
        for number in range(PLANS)
    )
    large = [*SIZES, ENDED]
    small = (ACTIONS - sum(large)) // (PLANS - len(large))
    sizes = [*large, *[small] * (PLANS - len(large))]
    efficacy = [{"name": "released_nodes_ratio", "description": "", "unit": "%", "value": 25.0}]
    plans = ActionPlan.objects.bulk_create(
        ActionPlan(
            audit=audit,
            strategy=strategy,
            state=state_of(place),
            global_efficacy=efficacy,
            created_at=now - timedelta(days=DAYS * place / PLANS),
            start_time=now - timedelta(days=DAYS * place / PLANS) if place >= len(SIZES) else None,
            end_time=now - timedelta(days=DAYS * place / PLANS, minutes=-(place % 90))
            if place >= len(SIZES)
            else None,
            updated_at=now - timedelta(days=DAYS * place / PLANS, hours=-1),
            status_message="One or more actions were skipped.",
        )
        for place, audit in enumerate(audits)
    )
    EfficacyIndicator.objects.bulk_create(
        EfficacyIndicator(action_plan=plan, name=name, unit="%", value=value)
        for plan in plans
        for name, value in (("compute_nodes_count", 40), ("released_compute_nodes_count", 10))
    )
    actions = create(
        action for plan, size in zip(plans, sizes, strict=True) for action in actions_of(plan, size, servers)
    )
    keys = iter(actions)
    own = [list(islice(keys, size)) for size in sizes]
    create(link for members in own for link in links_of(members))
    create(
        ActionEvent(
            action=action,
            event="execute",
            attempt=1,
            host=f"worker-{action.pk % 4}",
            result="Success" if action.state == "SUCCEEDED" else "Error",
            start_time=action.start_time,
            finish_time=action.end_time,
        )
        for action in actions
        if action.start_time
    )
    return plans[: len(large)]


def state_of(place: int) -> str:
    """Return the state of a plan: those of `SIZES` can be started, and that of `ENDED` succeeded."""
    if place < len(SIZES):
        return "RECOMMENDED"
    return "SUCCEEDED" if place == len(SIZES) else PLAN_STATES[place % len(PLAN_STATES)]


def actions_of(plan: ActionPlan, size: int, servers: list[Server]) -> Iterator[Action]:
    """Yield migrations of all servers, each from the node to which the previous one of the server leads."""
    for number in range(size):
        server, node = servers[number % SERVERS], number % SERVERS + number // SERVERS
        migration = {"resource_id": str(server.uuid), "resource_name": server.name}
        nodes = {"source_node": host_of(node), "destination_node": host_of(node + 1)}
        skipped = number % 10 == 0
        state = "SKIPPED" if skipped else FINAL.get(plan.state, "PENDING")
        began = plan.created_at + timedelta(minutes=number % 50) if state in {"SUCCEEDED", "FAILED"} else None
        yield Action(
            action_plan=plan,
            action_type="migrate",
            input_parameters={**migration, "migration_type": "live", **nodes},
            state=state,
            status_message="Action skipped by user. Reason: measured" if skipped else None,
            skipped_by="benchmark" if skipped else None,
            created_at=plan.created_at,
            updated_at=began,
            attempt=1 if began else 0,
            start_time=began,
            end_time=began and began + timedelta(seconds=20 + number % 40),
        )


def links_of(actions: list[Action]) -> Iterator[ActionParent]:
    """Return layers of eight actions, each with two parents in the layer before."""
    layers = [actions[start : start + 8] for start in range(0, len(actions), 8)]
    for before, layer in pairwise(layers):
        for place, child in enumerate(layer):
            for parent in (before[place], before[(place + 1) % 8]):
                yield ActionParent(child=child, parent=parent)


def create(rows: Iterator[Any]) -> list[Any]:
    """Insert rows of one model in batches, and return them."""
    made: list[Any] = []
    while batch := list(islice(rows, BATCH)):
        made += type(batch[0])._default_manager.bulk_create(batch)
    return made
