"""The message of an ended plan: a summary that fits into its status_message."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from actions.models import FAILED_IN, NOT_EXECUTED, SKIPPED_AUTOMATICALLY, Action, ActionEvent
from actions.models.querysets import ActionQuerySet
from plans.messages import (
    ACTIONS,
    AND_MORE,
    BY_USER,
    ONE_ACTION,
    PARTLY_REVERTED,
    REVERTED,
    SKIPPED_SENTENCE,
    SOME,
    SOME_CANCELLED,
    SOME_FAILED,
    SOME_SKIPPED,
)
from watcher_site.messages import STATUS_MESSAGE_LENGTH, cut

SKIPPED = SKIPPED_SENTENCE.text
# The message has no space for more actions.
NAMEABLE = STATUS_MESSAGE_LENGTH // 36
# The length that the list of failed actions leaves for each of the lists of skipped and of cancelled actions: their
# number and the first action.
KEPT_FOR_OTHERS = 90
# A shorter part of a reason is not informative.
SHORTEST_REASON = 8


@dataclass
class Mention:
    """An action in a message: its UUID, with the user if one changed it, and the reason."""

    name: str
    why: str

    def within(self, length: int) -> str | None:
        """Return the name and as much of the reason as fits into ``length`` characters, or None."""
        free = length - len(f"{self.name} ()")
        if self.why and free >= min(SHORTEST_REASON, len(self.why)):
            return f"{self.name} ({cut(self.why, free)})"
        return self.name if length >= len(self.name) else None


def summarize(actions: ActionQuerySet, counts: Mapping[str, int], opening: str = "") -> str | None:
    """Return a message that lists the failed, skipped and cancelled actions with their reasons, or None without any.

    If actions were skipped, it begins with the sentence that existing clients match, after the ``opening``.
    ``counts`` is the number of actions in each state.
    """
    skipped, failed = counts.get(Action.State.SKIPPED, 0), counts.get(Action.State.FAILED, 0)
    # If the whole plan was cancelled, the opening states it.
    cancelled = 0 if opening else counts.get(Action.State.CANCELLED, 0)
    total = sum(counts.values())
    text = f"{opening} {SKIPPED if skipped else ''}".strip()
    if failed:
        undone = describe_rollback(actions)
        kept = len(f" {undone}") + KEPT_FOR_OTHERS * (bool(skipped) + bool(cancelled))
        lead = f"{text} {SOME_FAILED.fill(number=failed, total=format_count(total))}".lstrip()
        listed = list_mentions(lead, make_mentions(actions, "FAILED"), failed, STATUS_MESSAGE_LENGTH - kept)
        text = f"{listed} {undone}".rstrip()
    if skipped:
        lead = f"{text} {(SOME_SKIPPED if failed else SOME).fill(number=skipped, total=total)}"
        length = STATUS_MESSAGE_LENGTH - (KEPT_FOR_OTHERS if cancelled else 0)
        text = list_mentions(lead, make_mentions(actions, "SKIPPED"), skipped, length)
    if cancelled:
        lead = SOME_CANCELLED.fill(number=cancelled, total=total if text else format_count(total))
        lead = f"{text} {lead}".lstrip()
        text = list_mentions(lead, make_mentions(actions, "CANCELLED"), cancelled, STATUS_MESSAGE_LENGTH)
    return text or None


def format_count(number: int) -> str:
    return ONE_ACTION.text if number == 1 else ACTIONS.fill(number=number)


def describe_rollback(actions: ActionQuerySet) -> str:
    """Return a sentence with the number of reverted actions, or an empty text without a rollback."""
    last = ActionEvent.objects.filter(action__in=actions, event="revert").order_by("pk")
    # Only the last event of an action counts: a revert is repeated if its worker was lost.
    results = list(dict(last.values_list("action", "result")).values())
    undone = results.count(ActionEvent.Result.SUCCESS)
    if not results:
        return ""
    message = PARTLY_REVERTED if undone < len(results) else REVERTED
    return message.fill(total=format_count(undone), number=len(results) - undone)


def make_mentions(actions: ActionQuerySet, state: str) -> list[Mention]:
    first = actions.present().filter(state=state).order_by("pk")[:NAMEABLE]
    return [make_mention(action) for action in first]


def make_mention(action: Action) -> Mention:
    if action.skipped_by:
        return Mention(BY_USER.fill(uuid=action.uuid, user=action.skipped_by), action.reason)
    message = action.status_message or ""
    for known in (SKIPPED_AUTOMATICALLY, FAILED_IN, NOT_EXECUTED):
        message = message.removeprefix(known)
    # The text does not repeat the UUID of the action.
    return Mention(str(action.uuid), message.replace(f" {action.uuid}", "").strip().removesuffix("."))


def list_mentions(lead: str, first: Iterable[Mention], total: int, length: int) -> str:
    """Return the lead and as many actions as fit into ``length`` characters, then the number of the others."""
    named: list[str] = []
    for one in first:
        before, after = f"{lead}: {', '.join([*named, ''])}", describe_rest(total - len(named) - 1)
        text = one.within(length - len(before) - len(after))
        if text is None:
            break
        named.append(text)
    return f"{lead}: {', '.join(named)}{describe_rest(total - len(named))}" if named else f"{lead}."


def describe_rest(more: int) -> str:
    return f"{AND_MORE.fill(list='', number=more)}." if more else "."
