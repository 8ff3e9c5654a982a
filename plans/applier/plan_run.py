"""The state of a running plan in the memory of its applier, which does not grow with the plan."""

import time
from collections import deque
from collections.abc import Iterator, Set
from datetime import datetime
from enum import Enum
from heapq import heappop, heappush
from math import inf

from django.conf import settings
from django.utils import timezone

from actions.engine import execution
from actions.models import Action
from actions.models.querysets import ActionQuerySet
from plans.applier.backlog import Backlog
from plans.applier.readiness import Releases
from plans.applier.rollback import find_next
from plans.executors import Executor, Job, Work
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from plans.models.action_plans import Hours
from watcher_site.database.queries import Placeholder, Query
from watcher_site.models import Service

# The number of actions that one query reads.
PAGE = 100

READY = Query(
    Action.objects.ready(Placeholder("now", Action._meta.get_field("due_time")))
    .filter(action_plan=Placeholder("plan"), pk__gt=Placeholder("last"))
    .order_by("pk")[:PAGE]
)
DERIVED = Query(
    Action.objects.ready(Placeholder("now", Action._meta.get_field("due_time")))
    .filter(derived_from=Placeholder("deriving"), pk__gt=Placeholder("last"))
    .order_by("pk")[:PAGE]
)


def pages(query: Query, **of: int) -> Iterator[list[Action]]:
    """Yield ready actions in pages, each of which is queried when it is needed."""
    last = 0
    while True:
        page = query.rows(**of, last=last, now=timezone.now())
        yield page
        if len(page) < PAGE:
            return
        last = page[-1].pk


class RunState(Enum):
    """The state of a plan in its applier. In all but LOST it may have running actions."""

    OPEN = "actions begin when they become ready"
    CLOSED = "no action begins, because the plan is suspended or its window is closed"
    AWAITING_SIGNAL = "all remaining actions are suspended"
    REVERTING = "an action failed, and the others are being reverted"
    CANCELLING = "no action begins, because the plan is being cancelled"
    LOST = "another applier owns the plan, or this one failed on it"


# In these states only interrupted actions are recovered, and no action begins.
ENDING = frozenset({RunState.CANCELLING, RunState.LOST})


class PlanRun:
    """A running plan: its running actions, and the source of the next ones.

    Readiness is queried for the whole plan once, when the run begins, and from then on for the children of actions
    that ended: an action becomes ready when the last of its parents ends. For an action that derives others, the
    derived actions are queried.
    """

    def __init__(self, plan: ActionPlan, applier: Service, executor: Executor) -> None:
        self.plan_pk, self.plan_uuid, self.applier = plan.pk, str(plan.uuid), applier
        self.lease = PlanLease.of(plan, applier)
        self.executor = executor
        self.state = RunState.CANCELLING if plan.state == ActionPlan.State.CANCELLING else RunState.OPEN
        self.hours: Hours = (plan.opens_at, plan.closes_at)
        self.is_suspended, self.signals = plan.is_suspended, plan.signals
        self.running: set[int] = set()
        self.suspended: set[int] = set()
        self.releases = Releases()
        self.ready: deque[Action] = deque()
        self.backlog = Backlog()
        self.scans: deque[Iterator[list[Action]]] = deque()
        self.interrupted: deque[Action] = deque()
        self.deferred: list[tuple[datetime, int]] = []
        self.deriving: list[int] = []
        self.has_more_to_scan = False
        self.paused_until = 0.0
        self.rescan_at = inf
        self.scan_all()

    @property
    def actions(self) -> ActionQuerySet:
        actions: ActionQuerySet = Action.objects.filter(action_plan=self.plan_pk)
        return actions

    def scan_all(self) -> None:
        self.backlog.clear()
        self.scans = deque([pages(READY, plan=self.plan_pk)])

    def recover(self) -> int:
        """Queue the actions to recover, and return their number (`ActionQuerySet.interrupted`)."""
        self.interrupted = deque(self.actions.interrupted().exclude(pk__in=self.running).order_by("pk"))
        return len(self.interrupted)

    def apply_signals(self, suspended: bool, signals: int) -> None:
        """Apply signals to the plan or its actions. The next scan finds their consequences."""
        self.is_suspended, self.signals = suspended, signals
        if self.state is RunState.AWAITING_SIGNAL:
            self.state = RunState.OPEN
        self.clear()
        self.rescan()

    def rescan(self) -> None:
        """Query the actions to recover and, unless the plan is closed, the ready ones."""
        self.rescan_at = inf
        self.recover()
        if self.is_closed:
            self.mark_closed()
        elif not self.is_ending:
            self.ready.clear()
            self.scan_all()

    def track(self, action: Action) -> None:
        """Count an action as running that a worker started by itself."""
        self.running.add(action.pk)
        self.ready = deque(other for other in self.ready if other.pk != action.pk)
        self.backlog.discard(action.pk)

    def find_untracked(self) -> list[Action]:
        """Return the actions that living workers are executing and that this run does not track."""
        return list(self.actions.under_living_worker().exclude(pk__in=self.running))

    def load_deferred(self) -> bool:
        """Load the times of the deferred actions, and return whether there are any."""
        self.deferred = list(self.actions.deferred().values_list("due_time", "pk"))
        return bool(self.deferred)

    def load_deferred_derived(self) -> None:
        """Load the times of the deferred actions among those derived since the last call."""
        for due in self.actions.deferred().filter(derived_from__in=self.deriving).values_list("due_time", "pk"):
            heappush(self.deferred, due)
        self.deriving.clear()

    def cancel(self) -> None:
        """Begin no more actions. The running ones stop at their next checkpoints."""
        self.state = RunState.CANCELLING
        self.deferred.clear()
        self.deriving.clear()
        self.clear()

    def clear(self) -> None:
        """Discard the actions that could begin. The next scan of the plan finds them again."""
        self.releases.clear()
        self.ready.clear()
        self.backlog.clear()
        self.scans.clear()

    def lose(self) -> None:
        """Stop running the plan, which another applier owns. Running actions stop at their next checkpoints."""
        self.cancel()
        self.state = RunState.LOST
        self.rescan_at = inf
        self.interrupted.clear()

    def pause(self, seconds: float) -> None:
        """Begin no action for some seconds after an error of the site itself, which may occur again."""
        self.paused_until = time.monotonic() + seconds

    @property
    def is_paused(self) -> bool:
        return time.monotonic() < self.paused_until

    @property
    def is_ending(self) -> bool:
        return self.state in ENDING

    @property
    def has_hours(self) -> bool:
        return self.hours != (None, None)

    @property
    def is_closed(self) -> bool:
        """Return whether no action may begin, because the plan is suspended or its window is closed."""
        now, (opens_at, closes_at) = timezone.now(), self.hours
        is_outside = (opens_at is not None and now < opens_at) or (closes_at is not None and now >= closes_at)
        return not self.is_ending and (self.is_suspended or is_outside)

    @property
    def is_idle(self) -> bool:
        """Return whether the plan has nothing to do for now, so that another plan may run in its place."""
        if self.state is RunState.AWAITING_SIGNAL:
            return True
        is_about_to = self.is_ending or self.interrupted or self.rescan_at < inf
        if is_about_to or not self.running <= self.suspended:
            return False
        return self.is_closed or (bool(self.running) and not (self.backlog or self.has_candidates))

    @property
    def is_quiet(self) -> bool:
        """Return whether no action is running, can begin, or is suspended."""
        is_awaited = self.state is RunState.AWAITING_SIGNAL
        return not (self.running or self.backlog or self.has_candidates or is_awaited)

    @property
    def is_stalled(self) -> bool:
        """Return whether all actions wait for queues without free slots, while other queues make progress."""
        running = self.running - self.suspended
        if not (running or self.backlog) or self.has_candidates or self.rescan_at < inf:
            return False
        return self.executor.are_stalled(running, self.backlog.queues)

    @property
    def has_candidates(self) -> bool:
        """Return whether an action outside the backlog can begin as soon as there are slots, or at a later time."""
        known = self.interrupted or self.ready or self.releases or self.deferred or self.scans
        return bool(known or self.state is RunState.REVERTING or self.is_paused)

    def next_job(self, free_queues: Set[str]) -> Job | None:
        """Return the next job, or None. ``has_more_to_scan`` says whether to call this again without waiting.

        Args:
            free_queues: the queues for which the executor accepts another ready action.
        """
        self.has_more_to_scan = False
        job = None if self.is_paused else self.choose_job(free_queues)
        if job:
            self.running.add(job.action.pk)
        return job

    def choose_job(self, free_queues: Set[str]) -> Job | None:
        if time.monotonic() >= self.rescan_at:
            self.rescan()
        if self.interrupted:
            job = self.job(execution.recover, self.interrupted[0])
            self.interrupted.popleft()
            return job
        if self.is_ending:
            return None
        if self.is_closed:
            self.close()
            return None
        if self.state is RunState.CLOSED:
            self.open()
        return self.next_revert() if self.state is RunState.REVERTING else self.next_execution(free_queues)

    def next_execution(self, free_queues: Set[str]) -> Job | None:
        """Return a job for the first ready action of one of these queues. Those of other queues join the backlog."""
        if action := self.backlog.next(free_queues):
            return self.job(execution.execute, action)
        for _ in range(PAGE):
            if not self.ready:
                self.find_ready()
            if not self.ready:
                return None
            job = self.job(execution.execute, self.ready[0])
            self.ready.popleft()
            if job.action.pk in self.running:
                continue  # A scan found it again while it waits for a slot.
            if job.queue in free_queues:
                return job
            self.backlog.add(job.queue, job.action)
        # Thousands of actions may wait for the same queue. Other plans are served before the scan continues.
        self.has_more_to_scan = True
        return None

    def close(self) -> None:
        """Begin no action. When none is running, discard the ready ones, so that the plan is scanned when it opens."""
        self.mark_closed()
        if not self.running and (self.releases or self.ready or self.backlog):
            self.clear()

    def mark_closed(self) -> None:
        """Mark the run as CLOSED, so that ready actions are queried when it opens. A rollback keeps its state."""
        if self.state is RunState.OPEN:
            self.state = RunState.CLOSED

    def open(self) -> None:
        """Scan the plan again for the actions that could not begin while it was closed."""
        self.state = RunState.OPEN
        self.clear()
        self.scan_all()

    def next_revert(self) -> Job | None:
        """Return a job that reverts the next action. One action is reverted at a time."""
        action = None if self.running or self.find_untracked() else find_next(self.actions)
        if not (self.running or action):
            self.state = RunState.OPEN
        return self.job(execution.revert, action) if action else None

    def job(self, work: Work, action: Action) -> Job:
        queue = self.executor.queue_of(action)
        alone = execution.runs_alone(work, action)
        return Job(work, action, self.lease, execution.limit_of(action), queue, alone)

    def find_ready(self) -> None:
        """Find actions that became ready: children of ended actions first, then the rest of the scan."""
        if self.deriving:
            self.load_deferred_derived()
        while self.deferred and self.deferred[0][0] <= timezone.now():
            self.releases.add_candidate(heappop(self.deferred)[1])
        while not self.ready and self.releases:
            self.add_ready(self.releases.find_ready())
        while not self.ready and self.scans:
            page = next(self.scans[0], None)
            self.add_ready(page or [])
            if not page:
                self.scans.popleft()

    def prefetch(self) -> None:
        """Prefetch the children of running actions while no other action is ready."""
        may_begin = self.state is RunState.OPEN and not (self.is_paused or self.is_closed)
        if self.running and may_begin and not self.ready:
            self.releases.prefetched.read_children(self.running)

    def add_ready(self, found: list[Action]) -> None:
        # A running action is found again until its beginning is written.
        found = [action for action in found if action.pk not in self.running]
        self.ready.extend(action for action in found if action.state == Action.State.PENDING)
        if any(action.state == Action.State.CANCELLING for action in found):
            # It was cancelled while it waited for its derived actions. A worker may be aborting it already.
            self.recover()

    def record_end(self, action: Action, done: bool) -> None:
        self.running.discard(action.pk)
        if not done and self.state is not RunState.LOST:
            # Its state is unchanged, or another worker owns it. It must not wait for other actions that take long.
            self.rescan_at = min(self.rescan_at, time.monotonic() + settings.POLL_INTERVAL)
        if not done or self.is_ending:
            return
        if action.state == Action.State.PENDING and action.due_time:
            heappush(self.deferred, (action.due_time, action.pk))
        elif action.state == Action.State.PENDING and action.has_derived:
            self.scans.append(pages(DERIVED, deriving=action.pk))
            self.deriving.append(action.pk)
            # Its derived actions may have ended already, because reports arrive in any order.
            self.releases.forget(action.pk)
            self.releases.add_candidate(action.pk)
        elif action.state == Action.State.SUCCEEDED:
            self.releases.record_success(action.pk)
        else:
            self.releases.record_end(action.pk)
