"""Skip and restore actions, and change the reason of a skip, for the API, the console and the commands.

See docs/compatibility.md, "Skipping". Each function first locks the rows of the plans, in the order of their keys, as
the applier does when it begins a plan. Of a concurrent skip and start, only one succeeds.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2s
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Min, Model
from django.utils import timezone

from actions import messages
from actions.exclusions.matching import require_no_longer_excluded
from actions.graph.propagation import require_pending_origins, restore_planned, skip_planned
from actions.messages import ACTIONS_RESTORED, NOTED, SKIPPED_BY_USER_BECAUSE
from actions.models import REASON_LENGTH, SKIPPED_BY_USER, Action, may_be_restored
from actions.models.refusals import Operation, require_allowed
from actions.operations.approvals import withdraw_approvals
from watcher_site.database.queries import Placeholder, Query
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
CHANGED_COLUMNS = ("state", "status_message", "skipped_by", "reason", "exclusion_id")
ONE_LINE = str.maketrans(dict.fromkeys(map(chr, range(32)), " "))


class MatchingChanged(Conflict):
    """The filters match other actions than those that the user confirmed."""

    def __init__(self) -> None:
        super().__init__("The actions that match the filters have changed since they were shown.")


@dataclass(frozen=True)
class Matching:
    """All actions that match filters, of one plan or of all plans, as the user confirmed them."""

    query: Any
    """The queryset of these actions, which is evaluated again after the rows of their plans are locked."""
    confirmed: str
    """The `fingerprint` of the actions that the user confirmed."""

    def find(self) -> list[int]:
        """Return the keys of the actions that match now.

        Raises:
            MatchingChanged: these are not the confirmed ones.
        """
        keys = list(self.query.values_list("pk", flat=True))
        if fingerprint(keys) != self.confirmed:
            raise MatchingChanged
        return keys


def fingerprint(keys: Iterable[int]) -> str:
    """Return a hash of these keys."""
    return blake2s(repr(sorted(keys)).encode(), digest_size=16).hexdigest()


@transaction.atomic
def skip_action(uuid: UUID | str, by: str, reason: str | None = None) -> Action:
    """Skip a PENDING action of a plan that is RECOMMENDED or PENDING, and its planned derived actions.

    Args:
        by: the name of the user.
        reason: the user's reason, if any.

    Raises:
        NotFound: there is no such action.
        Conflict: the action or its plan is in a state that does not allow it.
        Invalid: the reason is too long.
    """
    action = lock_action(uuid)
    skip_locked([action], by, reason, is_alone=True)
    return action


@transaction.atomic
def skip_actions(
    plan: Model | None, selected: Iterable[UUID | str] | Matching, by: str, reason: str | None = None
) -> int:
    """Skip several actions of one plan, or of any plans, for one reason, with their planned derived actions.

    Returns the number of all skipped actions. If one is refused, none is skipped. The number of statements is
    constant.

    Raises:
        Conflict, Invalid, NotFound: as `skip_action`; the message names the action.
        MatchingChanged: the filters match other actions than those that were confirmed.
    """
    return skip_locked(lock_actions(plan, selected), by, reason, is_alone=False)


def skip_locked(actions: Sequence[Action], by: str, reason: str | None, is_alone: bool) -> int:
    """Skip actions of plans whose rows are locked, and return their number including planned derived actions."""
    for action in actions:
        require_allowed(Operation.SKIP, action, is_alone)
        action.skip(by, read_reason(action, reason))
    save_together("action.skip", actions, Action.State.PENDING, actions[0].reason if actions else None)
    return len(actions) + (skip_planned(actions) if any(action.has_planned for action in actions) else 0)


@transaction.atomic
def restore_action(uuid: UUID | str) -> Action:
    """Make a skipped action PENDING again, while its plan is RECOMMENDED or PENDING.

    Its planned derived actions that were skipped with it are restored, too. An approval of the plan is withdrawn.

    Raises:
        NotFound: there is no such action.
        Conflict: the action or its plan is in a state that does not allow it, it was skipped automatically, a rule
            still excludes it, or the action that will derive it is skipped.
    """
    action = lock_action(uuid)
    restore_locked([action], is_alone=True)
    return action


@transaction.atomic
def restore_actions(plan: Model | None, selected: Iterable[UUID | str] | Matching) -> int:
    """Restore several actions of one plan, or of any plans, with the actions that were skipped with them.

    Returns the number of all restored actions. If one is refused, none is restored.

    Raises:
        Conflict, NotFound: as `restore_action`; the message names the action.
        MatchingChanged: the filters match other actions than those that were confirmed.
    """
    actions = lock_actions(plan, selected)
    number = restore_locked([action for action in actions if not is_skipped_with_origin(action)], is_alone=False)
    require_pending_origins(actions)
    return number


def restore_locked(actions: Sequence[Action], is_alone: bool) -> int:
    """Restore actions of plans whose rows are locked, and return their number including planned derived actions."""
    for action in actions:
        require_allowed(Operation.RESTORE, action, is_alone)
    require_no_longer_excluded(actions)
    for action in actions:
        action.restore()
    save_together("action.restore", actions, Action.State.SKIPPED)
    plans = {action.action_plan_id: action.action_plan for action in actions}
    withdraw_approvals(plans.values(), ACTIONS_RESTORED.text)
    return len(actions) + (restore_planned(actions) if any(action.has_planned for action in actions) else 0)


@transaction.atomic
def change_reason(uuid: UUID | str, reason: str | None) -> Action:
    """Set the user's reason for the skip of an action, in any state of its plan.

    Raises:
        NotFound: there is no such action.
        Conflict: it is not SKIPPED.
        Invalid: the reason is too long.
    """
    action = lock_action(uuid)
    change_reason_locked(action, reason)
    return action


def change_reason_locked(action: Action, reason: str | None) -> None:
    """Set the reason for the skip of an action of a plan whose row is locked."""
    require_allowed(Operation.CHANGE_REASON, action)
    action.comment(read_reason(action, reason))
    action.save_state(*entries_of("action.update", action, message=action.reason, within=action.action_plan))


def lock_action(uuid: UUID | str) -> Action:
    """Return an action with its plan, whose row is locked until the transaction ends."""
    for action in WITH_LOCKED_PLAN.rows(uuid=uuid):
        return action
    raise NotFound(messages.ACTION_NOT_FOUND.fill(uuid=uuid))


def lock_actions(plan: Model | None, selected: Iterable[UUID | str] | Matching) -> list[Action]:
    """Return actions of one plan, or of any plans, with their plans, whose rows are locked until the transaction ends.

    Raises:
        NotFound: there is no such action, or it is not in this plan.
        MatchingChanged: the filters match other actions than those that were confirmed.
    """
    uuids = set() if isinstance(selected, Matching) else {UUID(str(uuid)) for uuid in selected}
    actions = selected.query if isinstance(selected, Matching) else Action.objects.present().filter(uuid__in=uuids)
    keys = {plan.pk} if plan else set(actions.order_by().values_list("action_plan", flat=True))
    # Lock the plans before the actions are read: a statement that waits for a lock does not see changes of other rows.
    locked = lock_plans(keys)
    confirmed = []
    if isinstance(selected, Matching):
        confirmed = selected.find()
        actions = Action.objects.present().filter(pk__in=confirmed)
    rows = list(actions.filter(action_plan__in=locked).order_by("pk"))
    for action in rows:
        action.action_plan = locked[action.action_plan_id]
    if len(rows) < len(confirmed):  # A further action matches, in a plan whose row is not locked.
        raise MatchingChanged
    if absent := uuids - {action.uuid for action in rows}:
        raise NotFound(messages.ACTION_NOT_FOUND.fill(uuid=min(absent)))
    return rows


def lock_plans(keys: Collection[int]) -> dict[int, Any]:
    """Lock the rows of plans, in the order of their keys, until the transaction ends, and return the plans by key.

    The plans are read through one action of each; a plan without actions is neither locked nor returned.
    """
    by_plan = Action.objects.filter(action_plan__in=keys).order_by().values("action_plan")
    one_of_each = Action.objects.filter(pk__in=by_plan.annotate(first=Min("pk")).values("first"))
    rows = one_of_each.select_related("action_plan").only("action_plan").order_by("action_plan_id")
    return {row.action_plan_id: row.action_plan for row in rows.select_for_update(of=("action_plan",))}


def is_skipped_with_origin(action: Action) -> bool:
    """Return whether the action was skipped with the one that will derive it, before its plan began."""
    is_skipped = action.state == Action.State.SKIPPED and not may_be_restored(action)
    return is_skipped and action.is_planned and action.action_plan.is_prunable


def save_together(event: str, actions: Sequence[Action], source: str, message: str | None = None) -> None:
    """Write the same transition of actions, and its history, in a constant number of statements.

    Raises:
        ConcurrentTransition: an action is no longer in the source state.
    """
    if not actions:
        return
    if len(actions) == 1:
        actions[0].save_state(*entries_of(event, actions[0], message=message, within=actions[0].action_plan))
        return
    columns = {name: getattr(actions[0], name) for name in CHANGED_COLUMNS}
    rows = Action.objects.present().filter(pk__in=[action.pk for action in actions], state=source)
    if rows.update(**columns, updated_at=timezone.now()) != len(actions):
        raise ConcurrentTransition("One of the actions is no longer as it was read.")
    record_many(event, actions, message=message, within=attrgetter("action_plan"))


def read_reason(action: Action, reason: str | None) -> str:
    """Return the user's reason without the prefixes of messages, because clients send an edited copy of the message.

    Raises:
        Invalid: the reason is too long for the message. Reasons are never cut.
    """
    text = without_controls((reason or "").translate(ONE_LINE)).strip()
    explained, noted = SKIPPED_BY_USER_BECAUSE.fill(reason=""), NOTED.fill(finding=action.finding, note="")
    for prefix in (explained, SKIPPED_BY_USER, noted, action.finding):
        text = text.removeprefix(prefix.strip()).strip()
    if len(text) > REASON_LENGTH:
        raise Invalid(
            f"Invalid input for field/attribute status_message. It must be at most {REASON_LENGTH} characters long, "
            f"so that the whole message has at most {STATUS_MESSAGE_LENGTH}."
        )
    return text
