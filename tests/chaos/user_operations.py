"""Operations of users while plans are executed: skip, start, cancel and signal."""

from collections.abc import Callable
from random import Random

from actions.models import Action
from actions.operations.signals import signal_action
from actions.operations.skipping import skip_actions
from plans.models import ActionPlan
from plans.operations.signals import signal_plan
from watcher_site.refusals import Refused
from watcher_site.state_machine import ConcurrentTransition, TransitionNotAllowed

Signal = Action.Signal
REFUSALS = (Refused, ConcurrentTransition, TransitionNotAllowed)


class UserOperations:
    def __init__(self, plans: list[ActionPlan], random: Random) -> None:
        self.random = random
        self.unstarted = list(plans)
        self.started: list[ActionPlan] = []
        self.refused = 0
        self.weights = {self.suspend_action: 4, self.suspend: 2, self.cancel_action: 2, self.skip: 1, self.cancel: 1}

    def prune_and_start(self) -> None:
        """Skip a few actions of the next plan, and start it."""
        if not self.unstarted:
            return
        plan = self.unstarted.pop(0)
        uuids = list(plan.actions.values_list("uuid", flat=True))
        skip_actions(plan, self.random.sample(uuids, min(3, len(uuids))), "alice", "not tonight")
        ActionPlan.objects.get(pk=plan.pk).launch()
        self.started.append(plan)

    def run_random_operation(self) -> None:
        """Run an operation on a plan that was started. The plan may already be final."""
        plan = self.random.choice(self.started)
        operation = self.random.choices(list(self.weights), list(self.weights.values()))[0]
        self.count_refusal(operation, ActionPlan.objects.get(pk=plan.pk))

    def count_refusal(self, operation: Callable[[ActionPlan], object], plan: ActionPlan) -> None:
        """Run an operation, and count it if it is refused."""
        try:
            operation(plan)
        except REFUSALS:
            self.refused += 1

    def resume_all(self) -> None:
        """Resume all suspended plans and actions."""
        # Includes PENDING plans: no applier claims a plan that was suspended before its start.
        for plan in ActionPlan.objects.filter(state__in=ActionPlan.SUSPENDABLE).exclude(suspended_by=None):
            self.count_refusal(lambda plan: signal_plan(plan, Signal.RESUME, "bob"), plan)
        for action in Action.objects.filter(state="SUSPENDED"):
            self.count_refusal(
                lambda _, action=action: signal_action(action.uuid, Signal.RESUME, "bob"), action.action_plan
            )

    def suspend(self, plan: ActionPlan) -> None:
        signal_plan(plan, Signal.SUSPEND, "bob")

    def suspend_action(self, plan: ActionPlan) -> None:
        self.signal_action(plan, Signal.SUSPEND)

    def cancel_action(self, plan: ActionPlan) -> None:
        self.signal_action(plan, Signal.CANCEL)

    def signal_action(self, plan: ActionPlan, signal: Action.Signal) -> None:
        """Send a signal to a random ONGOING action of a plan."""
        action = plan.actions.filter(state="ONGOING").order_by("?").first()
        if action:
            signal_action(action.uuid, signal, "bob")

    def cancel(self, plan: ActionPlan) -> None:
        plan.abandon("bob")

    def skip(self, plan: ActionPlan) -> None:
        action = Action.objects.filter(action_plan=plan).order_by("?").first()
        if action:
            skip_actions(plan, [action.uuid], "bob")
