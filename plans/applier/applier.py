"""The applier: it claims waiting plans, takes over the plans of lost appliers, and runs both to their end."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from actions.engine import execution
from actions.engine.signals import CANCELLED
from actions.engine.timeouts import fail_hung_action
from actions.graph.propagation import end_all_dependents
from actions.models import Action
from actions.types.hooks import clean_up_cancelled
from plans.applier.faults import message_of, set_aside
from plans.applier.plan_run import PlanRun, RunState
from plans.applier.timeouts import fail_overdue_actions
from plans.executors import Executor, JobStarted, Report, WorkerError
from plans.models import ActionPlan
from plans.notifications import CANCEL_START
from plans.planning.completion import STUCK, complete_plan
from plans.planning.scheduling import renew_hours
from watcher_site.models import Service
from watcher_site.monitoring.metrics import action_plan_claims
from watcher_site.outbox.writing import announce
from watcher_site.processes.worker import NOT_OF_ONE_RECORD, Worker
from watcher_site.request_context import within_request
from watcher_site.state_machine import ConcurrentTransition


class Applier(Worker):
    """A process that runs some of the plans. All that it keeps in memory can be read from the database again.

    Only the main thread claims plans, submits jobs and ends plans.
    """

    kind = Service.APPLIER

    def __init__(self, executor: Executor, host: str | None = None) -> None:
        self.executor = executor
        self.plans = ActionPlan.objects.all()
        self.runs: dict[int, PlanRun] = {}
        # The messages with which to end the plans on which this applier failed; empty if ending a plan failed as well.
        self.faulty: dict[int, str] = {}
        self.jobs = 0
        self.next_poll = 0.0
        self.has_polled = False
        super().__init__(host)

    @property
    def is_idle(self) -> bool:
        return self.has_polled and all(run.is_idle for run in self.runs.values())

    @property
    def free_plans(self) -> int:
        return max(0, settings.APPLIER_PLANS - sum(not (run.is_idle or run.is_stalled) for run in self.runs.values()))

    def step(self) -> None:
        if time.monotonic() >= self.next_poll:
            self.poll()
        self.fail_hung_actions()
        self.submit()
        self.prefetch()
        self.settle()

    def rest(self) -> None:
        if self.executor.free_queues and any(run.has_more_to_scan for run in self.runs.values()):
            return self.collect(0)
        return self.collect(max(0, min(settings.POLL_INTERVAL, self.next_poll - time.monotonic())))

    def await_database(self) -> None:
        self.next_poll, self.has_polled = time.monotonic() + settings.POLL_INTERVAL, False

    # Polling the database.

    def poll(self) -> None:
        self.next_poll = time.monotonic() + settings.POLL_INTERVAL
        if self.heartbeat.lost:
            self.renew()
        # Each applier renews the hours of its own plans.
        renew_hours(self.plans.filter(Q(applier=None) | Q(applier=self.service)), self.guarding)
        if self.runs:
            fail_overdue_actions(self.service, self.guarding)
        self.read_changes()
        if self.heartbeat.holds:
            self.adopt()
            self.claim()
            self.has_polled = True

    def poll_soon(self) -> None:
        self.next_poll, self.has_polled = 0.0, False

    def renew(self) -> None:
        for run in self.runs.values():
            ActionPlan.objects.filter(pk=run.plan_pk).release(run.applier)
            self.lose(run)
        super().renew()

    def read_changes(self) -> None:
        """Read which plans are being cancelled, were signalled or taken over, and their windows."""
        if not self.runs:
            return
        columns = ("pk", "state", "applier", "suspended_by", "signals", "opens_at", "closes_at")
        found = ActionPlan.objects.running().filter(pk__in=self.runs).values_list(*columns)
        current = {pk: row for pk, *row in found}
        for run in self.runs.values():
            with self.guarding(run.plan_pk):
                if run.plan_pk in current:
                    self.apply_row(run, *current[run.plan_pk])
                else:
                    self.lose(run)
        self.find_suspended()

    def apply_row(self, run: PlanRun, state: Any, owner: Any, suspended_by: Any, signals: Any, *hours: Any) -> None:
        """Apply the changes in the row of a plan to its run."""
        run.hours = (hours[0], hours[1])
        if owner != run.applier.pk:
            self.lose(run)
        elif run.plan_pk in self.faulty:
            return
        elif state == ActionPlan.State.CANCELLING and not run.is_ending:
            self.cancel(run)
        elif signals != run.signals:
            run.apply_signals(suspended_by is not None, signals)

    def find_suspended(self) -> None:
        """Read which running actions stay suspended: a plan with no others releases its place to another plan.

        A signal to a suspended action remains in its row until its recovery begins. Plans that never received a signal
        have no suspended actions, and are not queried.
        """
        signalled = {run.plan_pk: run for run in self.runs.values() if run.signals and run.running}
        if not signalled:
            return
        for run in signalled.values():
            run.suspended = set()
        suspended = Action.objects.filter(action_plan__in=signalled, state=Action.State.SUSPENDED, control=None)
        for pk, plan in suspended.values_list("pk", "action_plan"):
            signalled[plan].suspended.add(pk)

    def lose(self, run: PlanRun) -> None:
        run.lose()
        self.executor.drop_plan(run.plan_pk)

    def cancel(self, run: PlanRun) -> None:
        run.cancel()
        run.recover()
        aborting, cancelled = self.end_pending(run)
        self.log.info(
            "plan is being cancelled",
            plan=run.plan_uuid,
            cancelled=cancelled,
            aborting=aborting,
            running=len(run.running),
        )

    @transaction.atomic
    def end_pending(self, run: PlanRun) -> tuple[int, int]:
        """Abort the actions that wait for derived ones, cancel those that have not begun, and return both numbers.

        The plan is locked first, as by signals to many of its actions, so that neither deadlocks the other.
        """
        ActionPlan.objects.locked().filter(pk=run.plan_pk).first()
        announce(ActionPlan.notified_as, [CANCEL_START], [run.plan_pk])
        return run.actions.abort_waiting(), run.actions.cancel_pending(CANCELLED)

    def adopt(self) -> None:
        """Take over the plans of lost appliers. Their interrupted actions are recovered first."""
        free = self.plans.available_to(self.service).exclude(pk__in=[*self.runs, *self.faulty])
        for pk, owner in free.order_by("pk").values_list("pk", "applier")[: self.free_plans]:
            if ActionPlan.objects.filter(pk=pk, applier=owner).adopt(self.service):
                with self.guarding(pk):
                    self.take_over(ActionPlan.objects.get(pk=pk), owner)

    def take_over(self, plan: ActionPlan, owner: int | None) -> None:
        run = self.runs[plan.pk] = PlanRun(plan, self.service, self.executor)
        interrupted = run.recover()
        run.load_deferred()
        self.track_running(run)
        action_plan_claims.labels("adopted").inc()
        self.log.info("plan taken over", plan=run.plan_uuid, previous=owner, interrupted=interrupted)
        if run.state is RunState.CANCELLING:
            self.cancel(run)

    def track_running(self, run: PlanRun) -> bool:
        """Track the actions that workers started under a previous applier, and return whether there are any."""
        untracked = run.find_untracked()
        for action in untracked:
            if self.executor.track(run.job(execution.execute, action)):
                run.track(action)
                self.jobs += 1
        return bool(untracked)

    def claim(self) -> None:
        """Begin waiting plans, the oldest first, up to the number of plans that may run at once."""
        waiting = self.plans.waiting().open().exclude(pk__in=self.faulty)
        for pk in list(waiting.values_list("pk", flat=True)[: self.free_plans]):
            # Another applier may claim the plan, or a user may cancel or change it, at the same time.
            with self.guarding(pk):
                plan = waiting.filter(pk=pk).first()
                if plan is None:
                    continue
                with within_request(plan.request_id):
                    self.begin(plan)
                self.runs[pk] = PlanRun(plan, self.service, self.executor)
                action_plan_claims.labels("claimed").inc()
                self.log.info("plan claimed", plan=str(plan.uuid), request_id=self.runs[pk].lease.request_id)

    @transaction.atomic
    def begin(self, plan: ActionPlan) -> None:
        guards = {name: getattr(plan, name) for name in ("opens_at", "closes_at", "on_failure", "suspended_by")}
        plan.begin(self.service)
        plan.save_state(guards=guards)
        if plan.on_failure == ActionPlan.OnFailure.STOP:
            end_all_dependents(plan.actions.all())

    # Jobs.

    def submit(self) -> None:
        """Fill the free slots, taking actions from the plan with the fewest running ones first."""
        candidates = list(self.runs.values())
        while candidates and (free_queues := self.executor.free_queues):
            run = min(candidates, key=lambda candidate: len(candidate.running))
            job = None
            with self.guarding(run.plan_pk):
                job = run.next_job(free_queues)
            if job is None:
                candidates.remove(run)
                continue
            self.jobs += 1
            self.executor.submit(job)

    def prefetch(self) -> None:
        """Prefetch the children of running actions if slots are free, to begin them as soon as their parents end."""
        if self.executor.free_queues:
            for run in self.runs.values():
                with self.guarding(run.plan_pk):
                    run.prefetch()

    def collect(self, timeout: float) -> None:
        """Process the reports of the executor. If there are none, wait up to ``timeout`` seconds for the first."""
        for report in self.executor.collect_reports(timeout):
            if isinstance(report, JobStarted):
                self.jobs += 1
                with self.guarding(report.job.lease.plan):
                    self.runs[report.job.lease.plan].track(report.job.action)
            else:
                self.jobs -= 1
                self.handle(report)

    def fail_hung_actions(self) -> None:
        """Fail the actions that exceeded their timeouts without stopping; their plans continue."""
        for hung in self.executor.release_hung_jobs():
            job = hung.job
            self.jobs -= 1
            self.log.error("action given up", action=str(job.action.uuid), seconds=job.limit)
            try:
                action = fail_hung_action(job.action, job.lease, attempt=hung.attempt, has_begun=hung.has_begun)
                done = action is not None and action.state not in Action.UNDER_WAY
                self.handle(Report(replace(job, action=action or job.action), done))
            except Exception as problem:
                self.handle(Report(job, done=False, error=problem))

    def handle(self, report: Report) -> None:
        action = report.job.action
        run = self.runs[action.action_plan_id]
        with self.guarding(run.plan_pk):
            run.record_end(action, report.done)
            if run.plan_pk not in self.faulty:
                self.continue_after(run, report)

    def continue_after(self, run: PlanRun, report: Report) -> None:
        """Continue a plan according to the report of one of its jobs."""
        action = report.job.action
        if isinstance(report.error, Exception) and not isinstance(report.error, (*NOT_OF_ONE_RECORD, WorkerError)):
            self.set_aside(run.plan_pk, report.error)
        elif report.error:
            # The state of the action remains. The next scan of its plan recovers it.
            self.log.error("action interrupted", action=str(action.uuid), exc_info=report.error)
            run.pause(settings.POLL_INTERVAL)
        elif report.is_abandoned:
            run.interrupted.append(action)
        elif not report.done:
            if run.has_hours:
                # The clocks differ: according to that of the database, the window is not open yet, or closed already.
                run.pause(settings.POLL_INTERVAL)
            self.poll_soon()

    # The end of plans.

    def settle(self) -> None:
        for run in [run for run in self.runs.values() if run.is_quiet and run.plan_pk not in self.faulty]:
            with self.guarding(run.plan_pk):
                if run.state is RunState.LOST or not self.continues(run):
                    self.conclude(run)
        self.end_faulty()

    def continues(self, run: PlanRun) -> bool:
        """Return whether a plan without running actions has more to do, and prepare that."""
        is_cancelling = run.state is RunState.CANCELLING
        if is_cancelling:
            run.actions.abort_waiting()
        counts = run.actions.count_states()
        if any(counts.get(state) for state in Action.BEGUN):
            if run.recover():
                return True
            counts = run.actions.count_states()  # A worker that seemed lost has written the outcome of its action.
        if is_cancelling:
            return self.track_running(run)
        if run.actions.runnable_or_running().exists():
            self.track_running(run)
            run.scan_all()
            return True
        if counts.get(Action.State.PENDING) and run.load_deferred():
            return True
        if counts.get(Action.State.SUSPENDED):
            run.state = RunState.AWAITING_SIGNAL
            return True
        if counts.get(Action.State.FAILED) and settings.ROLLBACK:
            run.state = RunState.REVERTING if run.actions.to_revert().exists() else RunState.OPEN
        return run.state is RunState.REVERTING

    def conclude(self, run: PlanRun) -> None:
        """Write the final state of a plan, or release the plan if it has none yet or another applier owns it."""
        plan = ActionPlan.objects.running().filter(pk=run.plan_pk, applier=run.applier).first()
        if plan and run.state is not RunState.LOST:
            left = run.actions.cancel_pending(CANCELLED if run.state is RunState.CANCELLING else STUCK)
            counts = run.actions.count_states()
            if counts.get(Action.State.CANCELLED):
                clean_up_cancelled(run.actions)
            try:
                complete_plan(plan, counts, stuck=bool(left))
            except ConcurrentTransition:
                return self.poll_soon()
            self.log.info("plan settled", plan=run.plan_uuid, state=plan.state, message=plan.status_message)
        self.drop(run)
        return self.poll_soon()

    # Plans on which this applier failed.

    @contextmanager
    def guarding(self, plan: int) -> Iterator[None]:
        """Set a plan aside if the code within raises an error, so that the other plans continue."""
        run = self.runs.get(plan)
        try:
            with within_request(run.lease.request_id if run else ""):
                yield
        except ConcurrentTransition:
            pass  # Another process was first. The next poll reads the result.
        except NOT_OF_ONE_RECORD:
            raise
        except Exception as problem:
            self.set_aside(plan, problem)

    def set_aside(self, plan: int, problem: BaseException) -> None:
        """Begin no more actions of a plan, so that it ends when its running actions have ended."""
        uuid = ActionPlan.objects.filter(pk=plan).values_list("uuid", flat=True).first()
        self.log.error("plan set aside", plan=str(uuid), exc_info=problem)
        self.faulty.setdefault(plan, message_of(problem, self.host))
        if plan in self.runs:
            self.lose(self.runs[plan])

    def end_faulty(self) -> None:
        """End the plans that were set aside and have no running actions."""
        for plan, message in list(self.faulty.items()):
            run = self.runs.get(plan)
            if not message or (run and run.running):
                continue
            try:
                if not set_aside(plan, self.service, message):
                    continue
                del self.faulty[plan]
            except NOT_OF_ONE_RECORD:
                raise
            except Exception as problem:
                # This applier keeps the plan without running it, because another applier would fail on it as well.
                self.log.error("plan could not be ended", key=plan, exc_info=problem)
                self.faulty[plan] = ""
            self.runs.pop(plan, None)
            self.poll_soon()

    def drop(self, run: PlanRun) -> None:
        ActionPlan.objects.filter(pk=run.plan_pk).release(run.applier)
        self.executor.drop_plan(run.plan_pk)
        del self.runs[run.plan_pk]

    def stop(self) -> None:
        """Wait for the running actions, release the plans, and end: another applier adopts them immediately."""
        try:
            self.executor.withdraw()
            while self.jobs:
                self.read_changes()
                self.fail_hung_actions()
                self.collect(settings.POLL_INTERVAL)
            for run in list(self.runs.values()):
                with self.guarding(run.plan_pk):
                    self.hand_over(run)
            self.end_faulty()
        finally:
            self.executor.stop()
            super().stop()

    def hand_over(self, run: PlanRun) -> None:
        if run.state is not RunState.LOST and not self.continues(run):
            self.conclude(run)
        if run.plan_pk in self.runs:
            self.log.info("plan handed over", plan=run.plan_uuid)
            self.drop(run)
