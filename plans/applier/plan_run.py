"""The state of a plan in the memory of its applier: small, whatever the size of the plan."""

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

# How many actions are read at once; a plan may hold any number.
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
    """Yield ready actions page by page; each page is queried when it is needed."""
    last = 0
    while True:
        page = query.rows(**of, last=last, now=timezone.now())
        yield page
        if len(page) < PAGE:
            return
        last = page[-1].pk


class RunState(Enum):
    """The phase of a plan in its applier. All but LOST may also await the reports of running actions."""

    OPEN = "actions begin as they become ready"
    CLOSED = "nothing begins: the plan is suspended, or outside of its window"
    AWAITING_SIGNAL = "all that is left is suspended"
    REVERTING = "an action failed, and the others are reverted"
    CANCELLING = "nothing begins any more"
    LOST = "another applier has the plan, or this one failed on it"


# Only interrupted actions are still recovered.
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
        self.at_work: set[int] = set()
        self.suspended_at_work: set[int] = set()
        self.releases = Releases()
        self.ready: deque[Action] = deque()
        self.backlog = Backlog()
        self.walks: deque[Iterator[list[Action]]] = deque()
        self.interrupted: deque[Action] = deque()
        self.later: list[tuple[datetime, int]] = []
        self.deriving: list[int] = []
        self.looks_on = False
        self.paused_until = 0.0
        self.looks_anew_at = inf
        self.walk_all()

    @property
    def actions(self) -> ActionQuerySet:
        actions: ActionQuerySet = Action.objects.filter(action_plan=self.plan_pk)
        return actions

    def walk_all(self) -> None:
        self.backlog.clear()
        self.walks = deque([pages(READY, plan=self.plan_pk)])

    def recover(self) -> int:
        """Queue every action for recovery that a lost worker left or that is recalled, and return their number."""
        self.interrupted = deque(self.actions.interrupted().exclude(pk__in=self.at_work).order_by("pk"))
        return len(self.interrupted)

    def apply_signals(self, suspended: bool, signals: int) -> None:
        """Look at what people signalled: what that begins, ends or recalls is found in the table."""
        self.is_suspended, self.signals = suspended, signals
        if self.state is RunState.AWAITING_SIGNAL:
            self.state = RunState.OPEN
        self.forget()
        self.look_anew()

    def look_anew(self) -> None:
        """Find in the table all that can be recovered, and all that can begin unless it is closed."""
        self.looks_anew_at = inf
        self.recover()
        if self.is_closed:
            self.note_closed()
        elif not self.is_ending:
            self.ready.clear()
            self.walk_all()

    def follow(self, action: Action) -> None:
        """Count as at work what a worker began without being sent it from here."""
        self.at_work.add(action.pk)
        self.ready = deque(other for other in self.ready if other.pk != action.pk)
        self.backlog.discard(action.pk)

    def in_hand(self) -> list[Action]:
        """Return what workers that live are at work on, and this run does not know of."""
        return list(self.actions.in_hand().exclude(pk__in=self.at_work))

    def remember_later(self) -> bool:
        """Remember the deferred actions, of any applier, and return whether there are any."""
        self.later = list(self.actions.deferred().values_list("due_time", "pk"))
        return bool(self.later)

    def remember_delayed(self) -> None:
        """Remember of what actions derived since the last look what is not to begin at once."""
        for later in self.actions.deferred().filter(derived_from__in=self.deriving).values_list("due_time", "pk"):
            heappush(self.later, later)
        self.deriving.clear()

    def cancel(self) -> None:
        """Begin nothing more; what runs stops at its next checkpoint."""
        self.state = RunState.CANCELLING
        self.later.clear()
        self.deriving.clear()
        self.forget()

    def forget(self) -> None:
        """Forget the actions that could begin: the next look at the whole plan finds them again."""
        self.releases.clear()
        self.ready.clear()
        self.backlog.clear()
        self.walks.clear()

    def lose(self) -> None:
        """Another applier has the plan: what runs stops at its next checkpoint, without a word."""
        self.cancel()
        self.state = RunState.LOST
        self.looks_anew_at = inf
        self.interrupted.clear()

    def pause(self, seconds: float) -> None:
        """Begin nothing for a while: something of our own failed, and may fail again."""
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
        """Return whether no action may begin, as the plan is suspended or outside of its window."""
        now, (opens_at, closes_at) = timezone.now(), self.hours
        is_outside = (opens_at is not None and now < opens_at) or (closes_at is not None and now >= closes_at)
        return not self.is_ending and (self.is_suspended or is_outside)

    @property
    def rests(self) -> bool:
        """Return whether the plan is idle and stays so for now, so that another plan may take its place."""
        if self.state is RunState.AWAITING_SIGNAL:
            return True
        is_about_to = self.is_ending or self.interrupted or self.looks_anew_at < inf
        if is_about_to or not self.at_work <= self.suspended_at_work:
            return False
        return self.is_closed or (bool(self.at_work) and not (self.backlog or self.could_begin))

    @property
    def is_quiet(self) -> bool:
        """Return whether no action is running, could begin, or is awaited."""
        is_awaited = self.state is RunState.AWAITING_SIGNAL
        return not (self.at_work or self.backlog or self.could_begin or is_awaited)

    @property
    def is_stalled(self) -> bool:
        """Return whether all actions wait for queues without progress, while queues of other plans have some."""
        at_work = self.at_work - self.suspended_at_work
        if not (at_work or self.backlog) or self.could_begin or self.looks_anew_at < inf:
            return False
        return self.executor.are_stalled(at_work, self.backlog.queues)

    @property
    def could_begin(self) -> bool:
        """Return whether a known action, apart from the backlog, could begin as soon as there are slots, or later."""
        known = self.interrupted or self.ready or self.releases or self.later or self.walks
        return bool(known or self.state is RunState.REVERTING or self.is_paused)

    def next_job(self, free_queues: Set[str]) -> Job | None:
        """Return what can be begun now, or nothing; ``looks_on`` says whether to ask again soon.

        Args:
            free_queues: those for which the executor accepts another ready action.
        """
        self.looks_on = False
        job = None if self.is_paused else self.choose(free_queues)
        if job:
            self.at_work.add(job.action.pk)
        return job

    def choose(self, free_queues: Set[str]) -> Job | None:
        if time.monotonic() >= self.looks_anew_at:
            self.look_anew()
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
        return self.next_revert() if self.state is RunState.REVERTING else self.begin(free_queues)

    def begin(self, free_queues: Set[str]) -> Job | None:
        """Return a job for the first action of one of these queues; the actions of others wait in the backlog."""
        if action := self.backlog.next(free_queues):
            return self.job(execution.execute, action)
        for _ in range(PAGE):
            if not self.ready:
                self.look()
            if not self.ready:
                return None
            job = self.job(execution.execute, self.ready[0])
            self.ready.popleft()
            if job.action.pk in self.at_work:
                continue  # It waits for a slot already, and was found once more.
            if job.queue in free_queues:
                return job
            self.backlog.add(job.queue, job.action)
        # Thousands may wait for the same queue: other plans have their turn meanwhile.
        self.looks_on = True
        return None

    def close(self) -> None:
        """Begin nothing. Once nothing is at work, the table tells whether more is to begin, or the plan has ended."""
        self.note_closed()
        if not self.at_work and (self.releases or self.ready or self.backlog):
            self.forget()

    def note_closed(self) -> None:
        """Mark the run as CLOSED, so that ready actions are found anew when it opens. A rollback keeps its state."""
        if self.state is RunState.OPEN:
            self.state = RunState.CLOSED

    def open(self) -> None:
        """Look at all of it anew: what was about to begin when it closed, and did not, is found again."""
        self.state = RunState.OPEN
        self.forget()
        self.walk_all()

    def next_revert(self) -> Job | None:
        """Revert one at a time, in the order of a rollback."""
        action = None if self.at_work or self.in_hand() else find_next(self.actions)
        if not (self.at_work or action):
            self.state = RunState.OPEN
        return self.job(execution.revert, action) if action else None

    def job(self, work: Work, action: Action) -> Job:
        queue = self.executor.queue_of(action)
        alone = execution.is_to_be_alone(work, action)
        return Job(work, action, self.lease, execution.limit_of(action), queue, alone)

    def look(self) -> None:
        """Find what became ready: among the children of those that finished, then in what is left of the plan."""
        if self.deriving:
            self.remember_delayed()
        while self.later and self.later[0][0] <= timezone.now():
            self.releases.consider(heappop(self.later)[1])
        while not self.ready and self.releases:
            self.take(self.releases.find())
        while not self.ready and self.walks:
            page = next(self.walks[0], None)
            self.take(page or [])
            if not page:
                self.walks.popleft()

    def look_ahead(self) -> None:
        """While nothing more can be begun, read what can be as soon as that which is at work has ended."""
        may_begin = self.state is RunState.OPEN and not (self.is_paused or self.is_closed)
        if self.at_work and may_begin and not self.ready:
            self.releases.prefetched.look(self.at_work)

    def take(self, found: list[Action]) -> None:
        # What is at work may be found once more while its beginning is not yet written.
        found = [action for action in found if action.pk not in self.at_work]
        self.ready.extend(action for action in found if action.state == Action.State.PENDING)
        if any(action.state == Action.State.CANCELLING for action in found):
            # A person cancelled it while it waited for those that it derived. It may be in a worker's hands already.
            self.recover()

    def end(self, action: Action, done: bool) -> None:
        self.at_work.discard(action.pk)
        if not done and self.state is not RunState.LOST:
            # It is as it was, or another's. Where others of the plan take long, it must not wait for them.
            self.looks_anew_at = min(self.looks_anew_at, time.monotonic() + settings.POLL_INTERVAL)
        if not done or self.is_ending:
            return
        if action.state == Action.State.PENDING and action.due_time:
            heappush(self.later, (action.due_time, action.pk))
        elif action.state == Action.State.PENDING and action.has_derived:
            self.walks.append(pages(DERIVED, deriving=action.pk))
            self.deriving.append(action.pk)
            # Reports may overtake each other: those that it derived may have ended already.
            self.releases.forget(action.pk)
            self.releases.consider(action.pk)
        elif action.state == Action.State.SUCCEEDED:
            self.releases.note_success(action.pk)
        else:
            self.releases.note_end(action.pk)
