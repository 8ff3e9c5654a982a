"""Plans that are executed while processes are killed and stopped at random, and users change the plans."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from actions.models import Action
from plans.models import ActionPlan
from tests.chaos.consistency import timed_out_or_lost
from tests.chaos.process_group import ProcessGroup
from tests.chaos.user_operations import UserOperations
from tests.chaos.workload import Workload

# The number of plans that are started and not yet final.
CONCURRENT_PLANS = 6
# The mean number of actions that end between two operations of users.
ACTIONS_PER_USER_OPERATION = 25


@dataclass(frozen=True)
class Report:
    """The number of each kind of incident during a run."""

    seconds: float
    killed: int
    stopped: int
    recovered: int
    timed_out_or_lost: int
    refused: int


class RandomSchedule:
    """Events at random intervals, measured in ended actions instead of time.

    On a slow machine, intervals of time would kill every action before its end.
    """

    def __init__(self, random: Random, mean_interval: float) -> None:
        self.random, self.mean_interval = random, mean_interval
        self.next = 0.0
        self.is_due(0)

    def is_due(self, ended: int) -> bool:
        if ended < self.next:
            return False
        self.next = ended + self.random.expovariate(1 / self.mean_interval)
        return True


def kill_processes(
    processes: ProcessGroup,
    actions: int,
    seed: int,
    deadline_seconds: float,
    actions_per_kill: float = 40,
    cause_fault: Callable[[], None] = lambda: None,
) -> Report:
    """Run plans with a number of actions to their end, and kill or stop a process about once in ``actions_per_kill``.

    ``cause_fault`` is called many times a second.

    Raises:
        TimeoutError: the plans did not end within ``deadline_seconds``.
    """
    random = Random(seed)  # noqa: S311 (no secret)
    users = UserOperations(Workload(seed).make_plans(actions), random)
    kills, user_operations = (
        RandomSchedule(random, actions_per_kill),
        RandomSchedule(random, ACTIONS_PER_USER_OPERATION),
    )
    begin = time.monotonic()
    while users.unstarted or ActionPlan.objects.exclude(state__in=ActionPlan.FINAL).exists():
        if time.monotonic() - begin > deadline_seconds:
            raise TimeoutError(f"after {deadline_seconds:g} s: {Action.objects.count_states()}")
        if ActionPlan.objects.filter(state__in=["PENDING", *ActionPlan.RUNNING]).count() < CONCURRENT_PLANS:
            users.prune_and_start()
        ended = Action.objects.filter(state__in=Action.FINAL).count()
        if kills.is_due(ended):
            processes.kill_or_stop_one(random)
        if user_operations.is_due(ended):
            users.run_random_operation()
        if random.random() < 0.05:
            users.resume_all()
        processes.check()
        cause_fault()
        time.sleep(0.05)
    return Report(
        time.monotonic() - begin,
        processes.killed,
        processes.stopped,
        Action.objects.filter(events__event="recover").distinct().count(),
        len(timed_out_or_lost()),
        users.refused,
    )
