"""The decision engine and the applier, run step by step in this process."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from actions.models import Action
from audits.engine.engine import DecisionEngine
from audits.models import Audit
from audits.operations.creation import create_audit
from plans.applier.applier import Applier
from plans.executors import ThreadExecutor
from plans.models import ActionPlan

# The time that the applier waits for the end of an action before it polls again, in seconds.
WAIT = 0.02


@dataclass(frozen=True)
class Took:
    """Seconds of wall-clock time, and of processor time of this process."""

    wall: float
    processor: float


@contextmanager
def took(into: list[Took]) -> Iterator[None]:
    wall, processor = time.perf_counter(), time.process_time()
    yield
    into.append(Took(time.perf_counter() - wall, time.process_time() - processor))


class Site:
    def __init__(self) -> None:
        self.engine = DecisionEngine()
        self.applier = Applier(ThreadExecutor(settings.APPLIER_WORKERS))
        for service in (self.engine, self.applier):
            service.heartbeat.start()

    def ask(self, strategy: str, goal: str, parameters: Mapping[str, Any], *, auto_trigger: bool = True) -> Audit:
        """Create a pending audit."""
        return create_audit(
            audit_type="ONESHOT", goal=goal, strategy=strategy, parameters=parameters, auto_trigger=auto_trigger
        )

    def decide(self, strategy: str, goal: str, parameters: Mapping[str, Any], *, auto_trigger: bool = True) -> Audit:
        """Run an audit, whose plan is launched automatically, and return it.

        Raises:
            RuntimeError: it failed.
        """
        audit = self.ask(strategy, goal, parameters, auto_trigger=auto_trigger)
        while self.engine.run_next_audit():
            pass
        answered: Audit = Audit.objects.get(pk=audit.pk)
        if answered.state != Audit.State.SUCCEEDED:
            raise RuntimeError(f"The audit is {answered.state}: {answered.status_message}")
        return answered

    def apply(self) -> None:
        """Run all pending plans to their end."""
        self.applier.poll_soon()
        self.applier.advance()
        while not self.applier.is_idle:
            self.applier.collect(WAIT)
            self.applier.advance()

    def outcome(self, audit: Audit) -> tuple[int, int]:
        """Return how many migrations succeeded, and how many actions of all types did not."""
        actions = Action.objects.filter(action_plan__audit=audit)
        succeeded = actions.filter(state=Action.State.SUCCEEDED)
        return succeeded.filter(action_type="migrate").count(), actions.count() - succeeded.count()

    def stop(self) -> None:
        self.applier.stop()
        self.engine.stop()
        if ActionPlan.objects.running().exists():
            raise RuntimeError("A plan is under way still.")
