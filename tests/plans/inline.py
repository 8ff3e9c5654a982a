"""An executor that runs each job immediately, in the thread and transaction of the test."""

from collections.abc import Set

from actions.models import Action
from plans.applier.applier import Applier
from plans.executors import HungJob, Job, Report
from plans.models import ActionPlan
from watcher_site.models import Service


class InlineExecutor:
    def __init__(self, slots: int = 1) -> None:
        self.slots = slots
        self.reports: list[Report] = []

    def queue_of(self, action: Action) -> str:
        return ""

    @property
    def free_queues(self) -> Set[str]:
        return {""} if len(self.reports) < self.slots else set()

    def are_stalled(self, actions: Set[int], queues: Set[str]) -> bool:
        return False

    def submit(self, job: Job) -> None:
        try:
            self.reports.append(Report(job, done=job.work(job.action, job.lease)))
        except Exception as problem:
            self.reports.append(Report(job, done=False, error=problem))

    def track(self, job: Job) -> bool:
        return False

    def drop_plan(self, plan: int) -> None:
        pass

    def collect_reports(self, timeout: float) -> list[Report]:
        reports, self.reports = self.reports, []
        return reports

    def release_hung_jobs(self) -> list[HungJob]:
        return []

    def withdraw(self) -> None:
        pass

    def stop(self) -> None:
        pass


def run_waiting(slots: int = 1) -> None:
    """Run all pending and orphaned plans step by step, without threads."""
    applier = Applier(InlineExecutor(slots))
    while True:
        applier.advance()
        if applier.is_idle:
            break
        applier.collect(0)
        # No thread renews the lease, which ends during actions that take long on a busy machine.
        if not applier.heartbeat.holds:
            applier.heartbeat.beat()
    applier.stop()


def claim(plan: ActionPlan, applier: Service) -> None:
    """Begin a plan, as an applier does when it claims the plan."""
    plan.begin(applier)
    plan.save_state()
