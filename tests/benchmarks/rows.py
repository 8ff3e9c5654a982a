"""The rows of the benchmark: 11,000 actions in 101 plans, with their parents and efficacy indicators."""

from itertools import pairwise
from uuid import uuid4

from django.contrib.auth.models import Group, User
from knox.models import AuthToken

from actions.graph.proposals import ProposedAction
from audits.models import Audit, Strategy
from plans.models import EfficacyIndicator
from plans.planning.proposals import propose
from watcher_site.accounts.users import CLOUD_ADMIN

SIZES = [100] * 100 + [1000]
NAME, PASSWORD = "benchmark", "a password of the benchmark"


def person() -> str:
    """Create a cloud administrator, and return a token of the account."""
    user = User.objects.create_user(NAME, password=PASSWORD)
    user.groups.add(Group.objects.get(name=CLOUD_ADMIN))
    return str(AuthToken.objects.create(user)[1])


def fill() -> None:
    strategy = Strategy.objects.present().get(name="dummy")
    audit = Audit.objects.create(
        name="benchmark", audit_type=Audit.Type.ONESHOT, goal=strategy.goal, strategy=strategy
    )
    for size in SIZES:
        propose(
            graph(size),
            audit_id=audit.pk,
            strategy_id=strategy.pk,
            indicators=indicators(),
            global_efficacy=[{"name": "released_nodes_ratio", "description": "", "unit": "%", "value": 25.0}],
        )


def graph(size: int) -> list[ProposedAction]:
    """Return migrations; each except the first two has the two preceding migrations as parents."""
    uuids = [uuid4() for _ in range(size)]
    parents = [(), uuids[:1], *pairwise(uuids)]
    return [
        ProposedAction("migrate", parameters(), tuple(before), uuid)
        for uuid, before in zip(uuids, parents, strict=False)
    ]


def parameters() -> dict[str, str]:
    return {
        "resource_id": str(uuid4()),
        "resource_name": "a server of the benchmark",
        "migration_type": "live",
        "source_node": "compute-17",
        "destination_node": "compute-42",
    }


def indicators() -> list[EfficacyIndicator]:
    return [
        EfficacyIndicator(name=name, description="What the benchmark achieves.", unit="%", value=value)
        for name, value in (("compute_nodes_count", 40), ("released_compute_nodes_count", 10))
    ]
