"""The heat map of used capacity by host aggregate and compute node."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Prefetch
from django.utils.translation import gettext as _

from cluster.models import ComputeNode, HostAggregate, Server
from watcher_site.templatetags.console import amount

# Larger pages are slow to render and hard to read.
SHOWN_NODES = 200
LEVELS = 5


@dataclass(frozen=True)
class Use:
    """The use of one resource: an amount of a capacity, in a unit."""

    used: float
    capacity: float
    unit: str

    @property
    def share(self) -> float:
        return self.used / self.capacity if self.capacity else float(bool(self.used))

    @property
    def percent(self) -> int:
        return round(100 * self.share)

    @property
    def level(self) -> str:
        """Return the step of the colour: 0 to 4, or ``over`` if the use exceeds the capacity."""
        return "over" if self.share > 1 else str(min(int(self.share * LEVELS), LEVELS - 1))

    @property
    def text(self) -> str:
        return f"{amount(self.used)} / {amount(self.capacity)} {self.unit}"


@dataclass(frozen=True)
class NodeUse:
    uuid: UUID
    hostname: str
    vcpus: Use
    memory: Use

    @property
    def share(self) -> float:
        return max(self.vcpus.share, self.memory.share)


@dataclass(frozen=True)
class GroupUse:
    """The displayed nodes of an aggregate, and the use of all its nodes."""

    name: str
    number: int
    nodes: list[NodeUse]
    vcpus: Use
    memory: Use

    @property
    def hidden(self) -> int:
        return self.number - len(self.nodes)


def capacity_in_use() -> dict[str, Any]:
    """Return the heat map, in three queries. A node of several aggregates is in each of them."""
    nodes = ComputeNode.objects.present()
    use = Server.objects.use_by_node(nodes)
    aggregates = Prefetch("aggregates", HostAggregate.objects.present().only("name"))
    groups: dict[str, list[NodeUse]] = {}
    for node in nodes.prefetch_related(aggregates):
        used = use.get(node.pk, Counter())
        cell = NodeUse(
            node.uuid,
            node.hostname,
            Use(used.get("vcpus", 0), node.capacity_vcpus, "vCPU"),
            Use(used.get("memory", 0) / 1024, node.capacity_memory / 1024, "GB"),
        )
        for name in [aggregate.name for aggregate in node.aggregates.all()] or [""]:
            groups.setdefault(name, []).append(cell)
    each = max(SHOWN_NODES // len(groups), 1) if groups else 0
    # The nodes without an aggregate come last.
    return {"groups": [sum_up(name, groups[name], each) for name in sorted(groups, key=lambda name: (not name, name))]}


def sum_up(name: str, cells: list[NodeUse], shown: int) -> GroupUse:
    fullest = sorted(cells, key=lambda cell: (-cell.share, cell.hostname))
    return GroupUse(
        name or _("No aggregate"),
        len(cells),
        fullest[:shown],
        total(cell.vcpus for cell in cells),
        total(cell.memory for cell in cells),
    )


def total(uses: Iterable[Use]) -> Use:
    use_list = list(uses)
    return Use(sum(use.used for use in use_list), sum(use.capacity for use in use_list), use_list[0].unit)
