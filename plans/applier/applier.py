"""The applier: claims plans that wait, takes over those whose applier is gone, and runs both to their end."""

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
from plans.applier.timeouts import end_late
from plans.executors import Executor, JobStarted, Report, WorkerError
from plans.models import ActionPlan
from plans.notifications import CANCEL_START
from plans.planning.completion import STUCK, settle
from plans.planning.scheduling import open_again
from watcher_site.models import Service
from watcher_site.monitoring.metrics import action_plan_claims
from watcher_site.outbox.writing import announce
from watcher_site.processes.worker import NOT_OF_ONE_RECORD, Worker
from watcher_site.state_machine import ConcurrentTransition


class Applier(Worker):
    """One process's share of the plans; what stands here may be lost.

    Only the main thread claims, submits and settles.
    """

    kind = Service.APPLIER

    def __init__(self, executor: Executor, host: str | None = None) -> None:
        self.executor = executor
        self.plans = ActionPlan.objects.all()
        self.runs: dict[int, PlanRun] = {}
        # By key of each plan that this applier failed on: the message to end it with; empty if ending it failed, too.
        self.faulty: dict[int, str] = {}
        self.jobs = 0
        self.next_look = 0.0
        self.looked = False
        super().__init__(host)

    @property
    def is_idle(self) -> bool:
        return self.looked and all(run.rests for run in self.runs.values())

    @property
    def free_plans(self) -> int:
        return max(0, settings.APPLIER_PLANS - sum(not (run.rests or run.is_stalled) for run in self.runs.values()))

    def step(self) -> None:
        if time.monotonic() >= self.next_look:
            self.look()
        self.fail_hung_actions()
        self.submit()
        self.look_ahead()
        self.settle()

    def rest(self) -> None:
        if self.executor.free_queues and any(run.looks_on for run in self.runs.values()):
            return self.collect(0)
        return self.collect(max(0, min(settings.POLL_INTERVAL, self.next_look - time.monotonic())))

    def await_database(self) -> None:
        self.next_look, self.looked = time.monotonic() + settings.POLL_INTERVAL, False

    # What others did, and what waits.

    def look(self) -> None:
        self.next_look = time.monotonic() + settings.POLL_INTERVAL
        if self.heartbeat.lost:
            self.renew()
        # A plan that another applier runs is opened by that applier.
        open_again(self.plans.filter(Q(applier=None) | Q(applier=self.service)), self.guarding)
        if self.runs:
            end_late(self.service, self.guarding)
        self.watch()
        if self.heartbeat.holds:
            self.adopt()
            self.claim()
            self.looked = True

    def look_soon(self) -> None:
        self.next_look, self.looked = 0.0, False

    def renew(self) -> None:
        for run in self.runs.values():
            ActionPlan.objects.filter(pk=run.plan_pk).release(run.applier)
            self.lose(run)
        super().renew()

    def watch(self) -> None:
        """Notice plans that are being cancelled or signalled, those that others took over, and when they may go on."""
        if not self.runs:
            return
        columns = ("pk", "state", "applier", "suspended_by", "signals", "opens_at", "closes_at")
        found = ActionPlan.objects.running().filter(pk__in=self.runs).values_list(*columns)
        current = {pk: row for pk, *row in found}
        for run in self.runs.values():
            with self.guarding(run.plan_pk):
                self.note(run, *current.get(run.plan_pk, [None] * 6))
        self.note_suspended()

    def note(self, run: PlanRun, state: Any, owner: Any, suspended_by: Any, signals: Any, *hours: Any) -> None:
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

    def note_suspended(self) -> None:
        """Notice which actions wait in the midst of their work: where all that is at work does, others have the place.

        What no signal was ever given in has none.
        """
        signalled = {run.plan_pk: run for run in self.runs.values() if run.signals and run.at_work}
        if not signalled:
            return
        for run in signalled.values():
            run.suspended_at_work = set()
        suspended = Action.objects.filter(action_plan__in=signalled, state=Action.State.SUSPENDED)
        for pk, plan in suspended.values_list("pk", "action_plan"):
            signalled[plan].suspended_at_work.add(pk)

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
            running=len(run.at_work),
        )

    @transaction.atomic
    def end_pending(self, run: PlanRun) -> tuple[int, int]:
        """Abort what waits for what it derived, and cancel what has not begun; return how many these are.

        Who signals actions of the plan locks many of its rows as well: the plan's row comes first for both.
        """
        ActionPlan.objects.locked().filter(pk=run.plan_pk).first()
        announce(ActionPlan.notified_as, [CANCEL_START], [run.plan_pk])
        return run.actions.abort_waiting(), run.actions.cancel_pending(CANCELLED)

    def adopt(self) -> None:
        """Take over plans whose applier is gone, and first recover what it left behind."""
        free = self.plans.free_for(self.service).exclude(pk__in=[*self.runs, *self.faulty])
        for pk, owner in free.order_by("pk").values_list("pk", "applier")[: self.free_plans]:
            if ActionPlan.objects.filter(pk=pk, applier=owner).adopt(self.service):
                with self.guarding(pk):
                    self.take_over(ActionPlan.objects.get(pk=pk), owner)

    def take_over(self, plan: ActionPlan, owner: int | None) -> None:
        run = self.runs[plan.pk] = PlanRun(plan, self.service, self.executor)
        interrupted = run.recover()
        run.remember_later()
        self.follow(run)
        action_plan_claims.labels("adopted").inc()
        self.log.info("plan taken over", plan=run.plan_uuid, previous=owner, interrupted=interrupted)
        if run.state is RunState.CANCELLING:
            self.cancel(run)

    def follow(self, run: PlanRun) -> bool:
        """Follow the actions that workers execute, of any applier, and return whether there are any."""
        in_hand = run.in_hand()
        for action in in_hand:
            if self.executor.track(run.job(execution.execute, action)):
                run.follow(action)
                self.jobs += 1
        return bool(in_hand)

    def claim(self) -> None:
        """Begin plans that wait, oldest first, as many as may be under way at once."""
        waiting = self.plans.waiting().open().exclude(pk__in=self.faulty)
        for pk in list(waiting.values_list("pk", flat=True)[: self.free_plans]):
            # Another applier, a cancel, a changed schedule or another choice may be first.
            with self.guarding(pk):
                plan = waiting.filter(pk=pk).first()
                if plan is None:
                    continue
                self.begin(plan)
                self.runs[pk] = PlanRun(plan, self.service, self.executor)
                action_plan_claims.labels("claimed").inc()
                self.log.info("plan claimed", plan=str(plan.uuid), request_id=self.runs[pk].lease.request_id)

    @transaction.atomic
    def begin(self, plan: ActionPlan) -> None:
        guards = {name: getattr(plan, name) for name in ("opens_at", "closes_at", "on_failure")}
        plan.begin(self.service)
        plan.save_state(guards=guards)
        if plan.on_failure == ActionPlan.OnFailure.STOP:
            end_all_dependents(plan.actions.all())

    # The work.

    def submit(self) -> None:
        """Fill the free slots, taking actions from the plan with the fewest running ones first."""
        candidates = list(self.runs.values())
        while candidates and (free_queues := self.executor.free_queues):
            run = min(candidates, key=lambda candidate: len(candidate.at_work))
            job = None
            with self.guarding(run.plan_pk):
                job = run.next_job(free_queues)
            if job is None:
                candidates.remove(run)
                continue
            self.jobs += 1
            self.executor.submit(job)

    def look_ahead(self) -> None:
        """Prefetch the children of running actions if slots are free, to begin them as soon as their parents end."""
        if self.executor.free_queues:
            for run in self.runs.values():
                with self.guarding(run.plan_pk):
                    run.look_ahead()

    def collect(self, timeout: float) -> None:
        """Wait so many seconds for actions to end: the end of one starts the next at once."""
        for report in self.executor.collect_reports(timeout):
            if isinstance(report, JobStarted):
                self.jobs += 1
                with self.guarding(report.job.lease.plan):
                    self.runs[report.job.lease.plan].follow(report.job.action)
            else:
                self.jobs -= 1
                self.take(report)

    def fail_hung_actions(self) -> None:
        """Fail what takes longer than it may and does not stop by itself; its plan goes on without it."""
        for hung in self.executor.release_hung_jobs():
            job = hung.job
            self.jobs -= 1
            self.log.error("action given up", action=str(job.action.uuid), seconds=job.limit)
            try:
                action = fail_hung_action(job.action, job.lease, attempt=hung.attempt, has_begun=hung.has_begun)
                done = action is not None and action.state not in Action.UNDER_WAY
                self.take(Report(replace(job, action=action or job.action), done))
            except Exception as problem:
                self.take(Report(job, done=False, error=problem))

    def take(self, report: Report) -> None:
        action = report.job.action
        run = self.runs[action.action_plan_id]
        with self.guarding(run.plan_pk):
            run.end(action, report.done)
            if run.plan_pk not in self.faulty:
                self.judge(run, report)

    def judge(self, run: PlanRun, report: Report) -> None:
        """Continue a plan according to the report of one of its jobs."""
        action = report.job.action
        if isinstance(report.error, Exception) and not isinstance(report.error, (*NOT_OF_ONE_RECORD, WorkerError)):
            self.set_aside(run.plan_pk, report.error)
        elif report.error:
            # The action stays as it is in the table; when its plan is looked at anew, it is recovered.
            self.log.error("action interrupted", action=str(action.uuid), exc_info=report.error)
            run.pause(settings.POLL_INTERVAL)
        elif report.is_abandoned:
            run.interrupted.append(action)
        elif not report.done:
            if run.has_hours:
                # The clocks of machines differ: by the database's it is a little too early, or too late.
                run.pause(settings.POLL_INTERVAL)
            self.look_soon()

    # The end.

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
            counts = run.actions.count_states()  # A worker that was thought lost has written its outcome after all.
        if is_cancelling:
            return self.follow(run)
        if run.actions.going_on().exists():
            self.follow(run)
            run.walk_all()
            return True
        if counts.get(Action.State.PENDING) and run.remember_later():
            return True
        if counts.get(Action.State.SUSPENDED):
            run.state = RunState.AWAITING_SIGNAL
            return True
        if counts.get(Action.State.FAILED) and settings.ROLLBACK:
            run.state = RunState.REVERTING if run.actions.to_revert().exists() else RunState.OPEN
        return run.state is RunState.REVERTING

    def conclude(self, run: PlanRun) -> None:
        """Give a plan its final state, or release it if that is not, or no longer, possible here."""
        plan = ActionPlan.objects.running().filter(pk=run.plan_pk, applier=run.applier).first()
        if plan and run.state is not RunState.LOST:
            left = run.actions.cancel_pending(CANCELLED if run.state is RunState.CANCELLING else STUCK)
            counts = run.actions.count_states()
            if counts.get(Action.State.CANCELLED):
                clean_up_cancelled(run.actions)
            try:
                settle(plan, counts, stuck=bool(left))
            except ConcurrentTransition:
                return self.look_soon()
            self.log.info("plan settled", plan=run.plan_uuid, state=plan.state, message=plan.status_message)
        self.drop(run)
        return self.look_soon()

    # Plans that this applier fails on.

    @contextmanager
    def guarding(self, plan: int) -> Iterator[None]:
        """Set a plan aside if the code within raises an error for it, so that the other plans go on."""
        try:
            yield
        except ConcurrentTransition:
            pass  # Another process was first: the next look reads the result.
        except NOT_OF_ONE_RECORD:
            raise
        except Exception as problem:
            self.set_aside(plan, problem)

    def set_aside(self, plan: int, problem: BaseException) -> None:
        """Begin no more actions of a plan; it ends as soon as none of its actions runs."""
        uuid = ActionPlan.objects.filter(pk=plan).values_list("uuid", flat=True).first()
        self.log.error("plan set aside", plan=str(uuid), exc_info=problem)
        self.faulty.setdefault(plan, message_of(problem, self.host))
        if plan in self.runs:
            self.lose(self.runs[plan])

    def end_faulty(self) -> None:
        """End the plans that were set aside and of which no action runs any more."""
        for plan, message in list(self.faulty.items()):
            run = self.runs.get(plan)
            if not message or (run and run.at_work):
                continue
            try:
                if not set_aside(plan, self.service, message):
                    continue
                del self.faulty[plan]
            except NOT_OF_ONE_RECORD:
                raise
            except Exception as problem:
                # This applier keeps it and does nothing more with it: another applier would fail on it as well.
                self.log.error("plan could not be ended", key=plan, exc_info=problem)
                self.faulty[plan] = ""
            self.runs.pop(plan, None)
            self.look_soon()

    def drop(self, run: PlanRun) -> None:
        ActionPlan.objects.filter(pk=run.plan_pk).release(run.applier)
        self.executor.drop_plan(run.plan_pk)
        del self.runs[run.plan_pk]

    def stop(self) -> None:
        """Wait for the running actions, release the plans, and end: another applier adopts them at once."""
        try:
            self.executor.withdraw()
            while self.jobs:
                self.watch()
                self.fail_hung_actions()
                self.collect(settings.POLL_INTERVAL)
            for run in list(self.runs.values()):
                with self.guarding(run.plan_pk):
                    self.leave(run)
            self.end_faulty()
        finally:
            self.executor.stop()
            super().stop()

    def leave(self, run: PlanRun) -> None:
        if run.state is not RunState.LOST and not self.continues(run):
            self.conclude(run)
        if run.plan_pk in self.runs:
            self.log.info("plan handed over", plan=run.plan_uuid)
            self.drop(run)
