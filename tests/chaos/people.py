"""Persons who do what they may while it storms: skip, start, cancel, signal."""

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


class People:
    def __init__(self, plans: list[ActionPlan], chance: Random) -> None:
        self.chance = chance
        self.waiting = list(plans)
        self.started: list[ActionPlan] = []
        self.refusals = 0
        # What they like to do, and how much.
        self.verbs = {self.suspend_action: 4, self.suspend: 2, self.cancel_action: 2, self.skip: 1, self.cancel: 1}

    def prune_and_start(self) -> None:
        """Skip a few actions of the next plan, and start it."""
        if not self.waiting:
            return
        plan = self.waiting.pop(0)
        uuids = list(plan.actions.values_list("uuid", flat=True))
        skip_actions(plan, self.chance.sample(uuids, min(3, len(uuids))), "alice", "not tonight")
        ActionPlan.objects.get(pk=plan.pk).launch()
        self.started.append(plan)

    def meddle(self) -> None:
        """Do something to a plan that was started, which may come too late."""
        plan = self.chance.choice(self.started)
        verb = self.chance.choices(list(self.verbs), list(self.verbs.values()))[0]
        self.attempt(verb, ActionPlan.objects.get(pk=plan.pk))

    def attempt(self, verb: Callable[[ActionPlan], object], plan: ActionPlan) -> None:
        try:
            verb(plan)
        except REFUSALS:
            self.refusals += 1

    def resume_all(self) -> None:
        """Resume all plans and actions that were suspended."""
        # One may have been suspended before an applier took it: none would take it after that.
        for plan in ActionPlan.objects.filter(state__in=ActionPlan.SUSPENDABLE).exclude(suspended_by=None):
            self.attempt(lambda one: signal_plan(one, Signal.RESUME, "bob"), plan)
        for action in Action.objects.filter(state="SUSPENDED"):
            self.attempt(lambda _, one=action: signal_action(one.uuid, Signal.RESUME, "bob"), action.action_plan)

    def suspend(self, plan: ActionPlan) -> None:
        signal_plan(plan, Signal.SUSPEND, "bob")

    def suspend_action(self, plan: ActionPlan) -> None:
        self.signal(plan, Signal.SUSPEND)

    def cancel_action(self, plan: ActionPlan) -> None:
        self.signal(plan, Signal.CANCEL)

    def signal(self, plan: ActionPlan, signal: Action.Signal) -> None:
        under_way = plan.actions.filter(state="ONGOING").order_by("?").first()
        if under_way:
            signal_action(under_way.uuid, signal, "bob")

    def cancel(self, plan: ActionPlan) -> None:
        plan.abandon("bob")

    def skip(self, plan: ActionPlan) -> None:
        action = Action.objects.filter(action_plan=plan).order_by("?").first()
        if action:
            skip_actions(plan, [action.uuid], "bob")
