"""What must be true when the storm is over, whatever happened in it."""

from collections import Counter
from uuid import UUID

from actions.models import Action, ActionEvent
from plans.models import ActionPlan
from tests.chaos.effects import changes, effects

# What each type of action changes, in the cloud's own tables.
CHANGES = {
    "migrate": "cluster_server.node_id",
    "stop": "cluster_server.state",
    "resize": "cluster_server.flavor",
    "volume_migrate": "cluster_volume.pool_id",
}
# What may have happened to the thing that an action is for, by the state that the action ended in.
LEGITIMATE = {
    Action.State.SUCCEEDED: {1},
    Action.State.FAILED: {0, 1},
    Action.State.SKIPPED: {0},
    Action.State.CANCELLED: {0},
}


def complaints() -> list[str]:
    """Return everything that is not as it must be; nothing if all is well."""
    checks = (unfinished, twice_final, wrong_effects, twice_derived, disagreeing_derivations, open_phases)
    return [complaint for check in (*checks, disagreeing_plans) for complaint in check()]


def unfinished() -> list[str]:
    plans = ActionPlan.objects.exclude(state__in=ActionPlan.FINAL)
    actions = Action.objects.unfinished()
    return [f"plan {plan} is {plan.state}" for plan in plans] + [f"{one} is {one.state}" for one in actions]


def twice_final() -> list[str]:
    """An action or a plan that came to a final state stays in it."""
    return [
        f"{column.partition('.')[0]} {uuid} came to a final state {number} times"
        for column, final in (("actions_action.state", Action.FINAL), ("plans_actionplan.state", ActionPlan.FINAL))
        for uuid, number in arrivals(column, final).items()
        if number > 1
    ]


def arrivals(column: str, states: frozenset[str]) -> Counter[UUID]:
    number: Counter[UUID] = Counter()
    for (uuid, state), times in effects(column).items():
        if state in states:
            number[uuid] += times
    return number


def wrong_effects() -> list[str]:
    """What an action did to the cloud fits the state that it ended in, and was done once."""
    wrong = []
    for kind, column in CHANGES.items():
        happened = changes(column)
        for one in Action.objects.filter(action_type=kind):
            times = happened[UUID(one.input_parameters["resource_id"])]
            if times not in LEGITIMATE.get(one.state, set()):
                wrong.append(f"{one} changed {column} {times} times: {story(one)}")
    return wrong


def twice_derived() -> list[str]:
    """Each thing is meant for one action: whoever derives is asked again after a crash, and makes nothing twice."""
    number = Counter(
        Action.objects.exclude(target=None).filter(action_type__in=CHANGES).values_list("target", flat=True)
    )
    return [f"{times} actions are for {target}" for target, times in number.items() if times > 1]


def disagreeing_derivations() -> list[str]:
    """What derived others succeeded only if they did, or were not to be done any more."""
    good = (Action.State.SUCCEEDED, Action.State.SKIPPED)
    deriving = Action.objects.filter(has_derived=True, state=Action.State.SUCCEEDED)
    return [
        f"{one} is {one.state}, and derived {other}, which is {other.state}"
        for one in deriving
        for other in one.derived.exclude(state__in=good)
    ]


def open_phases() -> list[str]:
    """Each phase that began has ended, be it as one whose outcome is unknown."""
    return [
        f"{event} was never ended: {story(event.action)}" for event in ActionEvent.objects.filter(finish_time=None)
    ]


def story(action: Action) -> str:
    """Return what is on record of an action, to find out how it came to that."""
    phases = [
        f"{phase.event}({phase.attempt}) {phase.start_time:%S.%f} to {phase.finish_time:%S.%f}"
        if phase.finish_time
        else f"{phase.event}({phase.attempt}) {phase.start_time:%S.%f} on"
        for phase in action.events.all()
    ]
    return f"{action.state} ({action.status_message}): {', '.join(phases)}"


def disagreeing_plans() -> list[str]:
    """A plan is FAILED if an action of it is, CANCELLED only with actions that are, and else SUCCEEDED."""
    wrong = []
    for plan in ActionPlan.objects.all():
        counts = plan.actions.count_states()
        if (plan.state == "FAILED") != bool(counts.get("FAILED")):
            wrong.append(f"plan {plan} is {plan.state} with {counts}")
        if plan.state == "CANCELLED" and not counts.get("CANCELLED"):
            wrong.append(f"plan {plan} is CANCELLED with {counts}")
    return wrong
