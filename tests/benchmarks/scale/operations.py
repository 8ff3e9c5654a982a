"""The operations that are compared: a claim, a start, a skip, batches of a purge, an export, a scrape of metrics."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from django.db.models import Max
from django.utils import timezone

from actions.operations.skipping import skip_action
from audits.gauges import AuditGauges
from audits.purging import Purge, batches, remove_rows
from plans.applier.applier import Applier
from plans.executors import ThreadExecutor
from plans.gauges import PlanGauges
from plans.models import ActionPlan
from plans.planning.proposals import propose
from tests.benchmarks.applier import independent
from tests.benchmarks.scale.costs import Installation, Work
from tests.benchmarks.scale.rows import ACTIONS_PER_PLAN
from watcher_site.history.reading import csv_lines, narrow
from watcher_site.models import HistoryEntry

# The actions of a plan that is made for a repetition.
SIZE = 10
# The largest number of plans and actions that a repetition removes.
MOST_REMOVED = 160
EXPORTED = 5000


def works(installations: list[Installation]) -> Iterator[Work]:
    """Yield each operation. Each repetition has rows of its own."""
    kinds: list[type[Operation]] = [Claim, Start, Skip, PurgePlans, PurgeHistory, Export, Scrape]
    for kind in kinds:
        found = {}
        for installation in installations:
            with installation.in_use():
                found[installation.name] = kind()
        yield Work(
            kind.name,
            {name: operation.perform for name, operation in found.items()},
            {name: operation.prepare for name, operation in found.items()},
        )


class Operation(ABC):
    name: ClassVar[str]

    def prepare(self) -> None:  # noqa: B027 (some need no rows of their own)
        """Create the rows of the next repetition."""

    @abstractmethod
    def perform(self) -> Any:
        """Perform the measured operation."""


class Claim(Operation):
    name = "an applier claims a plan"
    applier: Applier | None = None
    plan: ActionPlan

    def prepare(self) -> None:
        if self.applier:
            ActionPlan.objects.filter(pk=self.plan.pk).update(state=ActionPlan.State.CANCELLED, applier=None)
            self.applier.service.retire()
        self.plan = propose(independent(SIZE))
        self.plan.launch()
        self.applier = Applier(ThreadExecutor(1))

    def perform(self) -> None:
        assert self.applier
        self.applier.poll()
        if not self.applier.runs:
            raise RuntimeError("The plan was not claimed.")


class Start(Operation):
    name = "a plan is started"

    def prepare(self) -> None:
        ActionPlan.objects.filter(state=ActionPlan.State.PENDING).update(state=ActionPlan.State.CANCELLED)
        self.plan = propose(independent(SIZE))

    def perform(self) -> None:
        self.plan.launch()


class Skip(Operation):
    name = "an action is skipped"

    def prepare(self) -> None:
        self.action = propose(independent(SIZE)).actions.earliest("pk")

    def perform(self) -> None:
        skip_action(self.action.uuid, "benchmark", "measured")


class PurgePlans(Operation):
    """Each repetition removes the oldest plan that ended: the numbers of their actions are alike in both."""

    name = "a batch of a purge: a plan"

    def perform(self) -> None:
        if Purge(timezone.now()).remove(most=MOST_REMOVED) < ACTIONS_PER_PLAN // 2:
            raise RuntimeError("There is no plan to remove.")


class PurgeHistory(Operation):
    name = "a batch of a purge: history"

    def perform(self) -> None:
        rows = Purge(timezone.now()).history()
        if not remove_rows(rows, next(batches(rows))):
            raise RuntimeError("There is no history to remove.")


class Export(Operation):
    name = f"an export of {EXPORTED:,} entries of history"

    def __init__(self) -> None:
        last = HistoryEntry.objects.aggregate(last=Max("pk"))["last"]
        self.since = HistoryEntry.objects.get(pk=last - EXPORTED + 1).created_at

    def perform(self) -> None:
        if sum(1 for _ in csv_lines(narrow(HistoryEntry.objects.all(), {"since": self.since}))) < EXPORTED:
            raise RuntimeError("Entries are missing.")


class Scrape(Operation):
    name = "a scrape of the gauges of plans, actions and audits"

    def perform(self) -> None:
        for gauges in (PlanGauges(), AuditGauges()):
            list(gauges.collect())
