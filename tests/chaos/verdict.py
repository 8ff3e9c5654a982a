"""The conditions that must hold after a storm, whatever happened in it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q

from actions.engine.messages import INTERRUPTED, LOST_PROCESSES
from actions.messages import TOO_LONG
from actions.models import Action, ActionEvent
from cluster.models import Pool, Server, Volume
from cluster.models.storage import USAGE_COLUMNS
from plans.models import ActionPlan
from tests.chaos.effects import changes, effects

# What each type of action changes, in the cloud's own tables.
CHANGES = {
    "migrate": "cluster_server.node_id",
    "stop": "cluster_server.state",
    "resize": "cluster_server.flavor",
    "volume_migrate": "cluster_volume.pool_id",
    "change_nova_service_state": "cluster_computenode.status",
}
# The number of changes to the object of an action, by the final state of the action.
LEGITIMATE = {
    Action.State.SUCCEEDED: {1},
    Action.State.FAILED: {0},
    Action.State.SKIPPED: {0},
    Action.State.CANCELLED: {0},
}
# What servers and volumes hold on which no operation is under way.
FREE_SERVER = {"task_state": None, "destination": None, "new_flavor": None, "operation_owner": ""}
FREE_VOLUME = {"migration_status": None, "destination": None, "operation_owner": ""}
# An action that hangs is no longer waited for, and may have had its effect or not.
TIMED_OUT = TOO_LONG.opening
# An action that was interrupted too often, which no storm may cause: its effect and its state are certain.
GIVEN_UP = (LOST_PROCESSES.text.partition("%(number)s")[2], INTERRUPTED.start)


def complaints() -> list[str]:
    """Return everything that is not as it must be; nothing if all is well."""
    actions = (unfinished, twice_final, wrong_effects, abandoned, given_up_too_soon, twice_derived)
    others = (disagreeing_derivations, open_phases, disagreeing_plans, operations_left, miscounted_pools)
    return [complaint for check in (*actions, *others) for complaint in check()]


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
    """Return actions whose changes of the cloud do not match their final state, or were made twice."""
    wrong = []
    for kind, column in CHANGES.items():
        happened = changes(column)
        for one in Action.objects.filter(action_type=kind):
            times = happened[UUID(one.input_parameters["resource_id"])]
            if times not in ({0, 1} if is_timed_out(one) else LEGITIMATE.get(one.state, set())):
                wrong.append(f"{one} changed {column} {times} times: {story(one)}")
    return wrong


def is_timed_out(one: Action) -> bool:
    return one.state == Action.State.FAILED and TIMED_OUT in (one.status_message or "")


def given_up() -> list[Action]:
    """Return the actions that were interrupted too often, or that were given up before their end."""
    texts = Q(status_message__contains=TIMED_OUT)
    for text in GIVEN_UP:
        texts |= Q(status_message__contains=text)
    return list(Action.objects.filter(texts, state=Action.State.FAILED))


def abandoned() -> list[str]:
    """Check that no action is given up because processes that it shared with others were lost."""
    return [f"{one} was abandoned: {story(one)}" for one in given_up() if not is_timed_out(one)]


def operations_left() -> list[str]:
    """Check that no operation, with its capacity, is left under way unless a message names it to administrators."""
    servers = Server.objects.exclude(**FREE_SERVER)
    volumes = Volume.objects.exclude(**FREE_VOLUME)
    messages = " ".join(one.outputs.get("error", "") for one in Action.objects.filter(state=Action.State.FAILED))
    return [
        f"{left._meta.verbose_name} {left.uuid} was left in {columns}: {story_of_owner(left)}"
        for left, columns in left_columns((FREE_SERVER, servers), (FREE_VOLUME, volumes))
        if str(left.uuid) not in messages
    ]


def left_columns(*rows: Any) -> Iterator[tuple[Server | Volume, dict[str, Any]]]:
    """Return each row with its columns that are not as those of a free one."""
    for free, found in rows:
        for row in found:
            yield row, {name: getattr(row, name) for name in free if getattr(row, name) != free[name]}


def story_of_owner(row: Server | Volume) -> str:
    """Return what is on record of the action that began the operation on a row."""
    action = Action.objects.filter(uuid=row.operation_owner.partition("/")[0] or None).first()
    return f"{action}: {story(action)}" if action else "no action began it"


def miscounted_pools() -> list[str]:
    """Check that each pool counts the capacity of its volumes, and nothing else."""
    pools = list(Pool.objects.present())
    held = Volume.objects.held_by(pools)
    wrong = []
    for pool in pools:
        before = {name: getattr(pool, name) for name in USAGE_COLUMNS}
        pool.set_usage(*held[pool.pk])
        after = {name: getattr(pool, name) for name in USAGE_COLUMNS}
        if before != after:
            wrong.append(f"pool {pool.name} counts {before} and holds {after}")
    return wrong


def given_up_too_soon() -> list[str]:
    """Return actions that were timed out before the attempt that was ended had used all of its time."""
    too_long = ActionEvent.objects.filter(details__startswith=TIMED_OUT).select_related("action")
    return [f"{end.action} was given up too soon: {story(end.action)}" for end in too_long if not had_its_time(end)]


def had_its_time(end: ActionEvent) -> bool:
    phases: Iterable[ActionEvent] = end.action.events.filter(attempt=end.attempt, event__in=["execute", "go_on"])
    over = end.finish_time or end.start_time
    return all(phase.start_time + timedelta(seconds=end.action.seconds_allowed) <= over for phase in phases)


def twice_derived() -> list[str]:
    """Each object is meant for one action: a deriving action runs again after a crash, and derives nothing twice."""
    number = Counter(
        Action.objects.exclude(target=None).filter(action_type__in=CHANGES).values_list("target", flat=True)
    )
    return [f"{times} actions are for {target}" for target, times in number.items() if times > 1]


def disagreeing_derivations() -> list[str]:
    """Return actions that succeeded though a derived action did neither succeed nor become unnecessary."""
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
    """A plan is FAILED only if an action of it is, CANCELLED only with actions that are, and else SUCCEEDED."""
    wrong = []
    for plan in ActionPlan.objects.all():
        counts = plan.actions.count_states()
        has_any = {state: bool(counts.get(state)) for state in ("FAILED", "CANCELLED")}
        if not has_any.get(plan.state, not has_any["FAILED"]):
            wrong.append(f"plan {plan} is {plan.state} with {counts}")
    return wrong
