"""Skip and restore actions, and change the reason of a skip, for the API, the console and the commands.

See docs/compatibility.md, "Skipping". Each function locks the plan's row first, as the applier does when it begins the
plan, so that of a skip and a start that race exactly one wins.
"""

from collections.abc import Callable, Iterable, Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import Model
from django.utils import timezone

from actions.exclusions.restoring import require_lifted
from actions.graph.derived import check_origins, restore_planned, skip_planned
from actions.models import NOTE, REASON, REASON_LENGTH, SKIPPED_BY_USER, Action, may_be_restored
from watcher_site.database.statements import Placeholder, Query
from watcher_site.history import entries_of, record_many
from watcher_site.messages import STATUS_MESSAGE_LENGTH, without_controls
from watcher_site.refusals import Conflict, Invalid, NotFound
from watcher_site.state_machine import ConcurrentTransition

WITH_LOCKED_PLAN = Query(
    Action.objects.present()
    .filter(uuid=Placeholder("uuid", Action._meta.get_field("uuid")))
    .select_related("action_plan")
    .select_for_update(of=("action_plan",))
)
CHANGED_TOGETHER = ("state", "status_message", "skipped_by", "reason", "exclusion_id")
ONE_LINE = str.maketrans(dict.fromkeys(map(chr, range(32)), " "))


class WrongActionState(Conflict):
    """The state of an action does not allow the requested transition."""

    def __init__(self, action: Action, wanted: str) -> None:
        self.action, self.wanted = action, wanted
        super().__init__(f"State transition not allowed: ({action.state} -> {wanted})")

    def formerly(self) -> Conflict:
        """Return the same for clients that were written before actions could be SUSPENDED."""
        state = Action.State.ONGOING if self.action.state == Action.State.SUSPENDED else self.action.state
        return Conflict(f"State transition not allowed: ({state} -> {self.wanted})")


@transaction.atomic
def skip_action(uuid: UUID | str, by: str, reason: str | None = None) -> Action:
    """Skip one PENDING action of a plan that is RECOMMENDED or PENDING, and with it what it is to derive.

    Args:
        by: the name of the person.
        reason: their words; none, or empty, where they give none.

    Raises:
        NotFound: there is no such action.
        Conflict: the action or its plan is in a state that does not allow it.
        Invalid: the reason does not fit.
    """
    action = locked(uuid)
    check_skip(action)
    action.skip(by, words(action, reason))
    action.save_state(*entries_of("action.skip", action, message=action.reason, within=action.action_plan))
    skip_planned([action])
    return action


@transaction.atomic
def skip_actions(plan: Model, uuids: Iterable[UUID | str], by: str, reason: str | None = None) -> int:
    """Skip several actions of one plan for one reason, all or none, with what they are to derive.

    Returns how many that are together.

    The number of statements does not depend on how many they are.

    Raises:
        Conflict, Invalid, NotFound: as `skip_action`; the message names the action.
    """
    found = locked_together(plan, uuids)
    for action in found:
        naming(action, check_skip)
        action.skip(by, words(action, reason))
    change_together(found, Action.State.PENDING)
    record_many("action.skip", found, message=found[0].reason if found else None, within=plan)
    return len(found) + skip_planned(found)


@transaction.atomic
def restore_actions(plan: Model, uuids: Iterable[UUID | str]) -> int:
    """Take back that a person skipped these actions of one plan, all or none, and what was skipped with them.

    Returns how many that are together.

    Raises:
        Conflict, NotFound: as `restore_action`; the message names the action.
    """
    found = locked_together(plan, uuids)
    chosen = [action for action in found if not is_skipped_with_another(action)]
    for action in chosen:
        naming(action, check_restore)
    require_lifted(chosen)
    for action in chosen:
        action.restore()
    change_together(chosen, Action.State.SKIPPED)
    record_many("action.restore", chosen, within=plan)
    number = len(chosen) + restore_planned(chosen)
    check_origins(found)
    return number


@transaction.atomic
def restore_action(uuid: UUID | str) -> Action:
    """Make a skipped action PENDING again, while its plan is RECOMMENDED or PENDING.

    The actions that it is to derive, and that were skipped with it, are restored with it.

    Raises:
        NotFound: there is no such action.
        Conflict: the action or its plan is in a state that does not allow it, neither a person nor a rule skipped it,
            a rule still excludes it, or the one that is to derive it is skipped.
    """
    action = locked(uuid)
    if action.state == Action.State.SKIPPED and action.action_plan.is_prunable:
        check_origins([action])
    check_restore(action)
    require_lifted([action])
    action.restore()
    action.save_state(*entries_of("action.restore", action, within=action.action_plan))
    restore_planned([action])
    return action


@transaction.atomic
def change_reason(uuid: UUID | str, reason: str | None) -> Action:
    """Set a person's reason for the skip of an action, in any state of its plan.

    Raises:
        NotFound: there is no such action.
        Conflict: it is not SKIPPED.
        Invalid: the reason does not fit.
    """
    action = locked(uuid)
    if action.state != Action.State.SKIPPED:
        raise Conflict("status_message update only allowed when action state is SKIPPED")
    action.comment(words(action, reason))
    action.save_state(*entries_of("action.update", action, message=action.reason, within=action.action_plan))
    return action


def locked(uuid: UUID | str) -> Action:
    """Return an action with its plan, whose row is held until the transaction ends."""
    for action in WITH_LOCKED_PLAN.rows(uuid=uuid):
        return action
    raise NotFound(f"Action {uuid} could not be found")


def locked_together(plan: Model, uuids: Iterable[UUID | str]) -> list[Action]:
    """Return these actions of one plan, whose row is held until the transaction ends."""
    wanted = {UUID(str(uuid)) for uuid in uuids}
    of_plan = Action.objects.present().filter(action_plan=plan, uuid__in=wanted).select_related("action_plan")
    found = list(of_plan.select_for_update(of=("action_plan",)).order_by("pk"))
    if absent := wanted - {action.uuid for action in found}:
        raise NotFound(f"Action {min(absent)} could not be found")
    return found


def check_skip(action: Action) -> None:
    if action.state != Action.State.PENDING:
        raise WrongActionState(action, Action.State.SKIPPED)
    check_plan(action)


def check_restore(action: Action) -> None:
    if action.state != Action.State.SKIPPED:
        raise WrongActionState(action, Action.State.PENDING)
    if not may_be_restored(action):
        raise Conflict("Only what a person skipped can be restored; this action was skipped automatically")
    check_plan(action)


def is_skipped_with_another(action: Action) -> bool:
    """Return whether the action was skipped together with its origin, before its plan began."""
    is_skipped = action.state == Action.State.SKIPPED and not may_be_restored(action)
    return is_skipped and action.is_planned and action.action_plan.is_prunable


def check_plan(action: Action) -> None:
    if not action.action_plan.is_prunable:
        raise Conflict(f"State update not allowed for actionplan state: {action.action_plan.state}")


def naming(action: Action, check: Callable[[Action], None]) -> None:
    """Check one of several actions; what refuses it names it."""
    try:
        check(action)
    except Conflict as refusal:
        raise Conflict(f"Action {action.uuid}: {refusal}") from refusal


def change_together(actions: Sequence[Action], source: str) -> None:
    """Write what one verb made of these actions, which is the same for all, in one guarded statement.

    Raises:
        ConcurrentTransition: one of them is no longer in the state it was read in.
    """
    if not actions:
        return
    columns = {name: getattr(actions[0], name) for name in CHANGED_TOGETHER}
    standing = Action.objects.present().filter(pk__in=[action.pk for action in actions], state=source)
    if standing.update(**columns, updated_at=timezone.now()) != len(actions):
        raise ConcurrentTransition("One of the actions is no longer as it was read.")


def words(action: Action, reason: str | None) -> str:
    """Return what a person wrote, without our own words before it: people send an edited copy of the whole.

    Raises:
        Invalid: it would not fit into the message. A person's words are never cut.
    """
    text = without_controls((reason or "").translate(ONE_LINE)).strip()
    for own in (f"{SKIPPED_BY_USER}{REASON}", SKIPPED_BY_USER, f"{action.finding}{NOTE}", action.finding):
        text = text.removeprefix(own.strip()).strip()
    if len(text) > REASON_LENGTH:
        raise Invalid(
            f"Invalid input for field/attribute status_message. It must be at most {REASON_LENGTH} characters long, "
            f"so that the whole message has at most {STATUS_MESSAGE_LENGTH}."
        )
    return text
