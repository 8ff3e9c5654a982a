"""``manage.py apply_plan``: run one plan in the foreground."""

import sys
from typing import Any

from django.core.management.base import CommandParser

from plans.applier.foreground import Display, ForegroundApplier, describe_continuation
from plans.executors import Executor, ThreadExecutor
from plans.management.arguments import add_plan, find_plan
from plans.management.commands.run_applier import make_executor, read_workers
from plans.models import ActionPlan
from plans.models.refusals import PlanOperation, is_plan_allowing
from watcher_site.processes import commands
from watcher_site.processes.command_line import INTERRUPTED
from watcher_site.refusals import Conflict
from watcher_site.state_machine import ConcurrentTransition

State = ActionPlan.State
EXIT_STATUSES: dict[str, int] = {State.SUCCEEDED: 0, State.FAILED: 3, State.CANCELLED: 4}


class Command(commands.Command):
    help = (
        "Start a plan, run it in the foreground and show its progress, or follow the applier that already runs it. "
        "Exit status: 0: SUCCEEDED, 3: FAILED, 4: the plan or an action of it was CANCELLED, 130: it was left to "
        "other appliers."
    )
    requires_migrations_checks = True

    def add_arguments(self, parser: CommandParser) -> None:
        add_plan(parser)
        parser.add_argument(
            "--workers",
            type=read_workers,
            help="the number of threads for actions in this process, regardless of WATCHER_EXECUTOR",
        )
        commands.add_person(parser)

    def handle(self, *args: Any, plan: str, workers: int | None, person: str, **options: Any) -> None:
        found = find_plan(plan)
        start(found, person)
        display = Display(self.stdout)
        state = run(ForegroundApplier(found, executor_for(workers), display, by=person), display)
        if state != State.SUCCEEDED:
            sys.exit(EXIT_STATUSES.get(state, INTERRUPTED))


def executor_for(workers: int | None) -> Executor:
    """Return a `ThreadExecutor` with this number of threads, by default the executor of the settings."""
    return ThreadExecutor(workers) if workers else make_executor(None)


def start(plan: ActionPlan, person: str) -> None:
    """Start a plan for a user, unless it was already started.

    Raises:
        Conflict: the plan has ended.
    """
    if plan.state in ActionPlan.FINAL:
        remedy = (
            ": manage.py continue_plan makes a plan of what it left undone"
            if is_plan_allowing(PlanOperation.CONTINUE, plan)
            else ""
        )
        raise Conflict(f"plan: {plan.uuid} is {plan.state} already{remedy}.")
    if is_plan_allowing(PlanOperation.START, plan):
        try:
            plan.launch(commands.caller(person))
        except ConcurrentTransition:
            # Another process has started or cancelled the plan.
            start(ActionPlan.objects.find(plan.uuid), person)


def run(applier: ForegroundApplier, display: Display) -> str:
    """Run the plan until it ends or is left to other appliers, and return its state."""
    applier.stop_on_signals()
    display.start()
    try:
        applier.run(once=True)
    finally:
        display.stop()
    ended = applier.shown.plan
    if ended.state in ActionPlan.FINAL:
        display.print_end(ended)
    else:
        display.print(describe_continuation(ended))
    return str(ended.state)
