"""What a finished plan says of itself, in as many characters as its status_message holds."""

from collections.abc import Iterable, Mapping

from actions.models import SKIPPED_AUTOMATICALLY, Action
from actions.querysets import ActionQuerySet
from watcher_site.messages import STATUS_MESSAGE_LENGTH, cut

SKIPPED = "One or more actions were skipped."
# More can not be named within the length of a message.
NAMEABLE = STATUS_MESSAGE_LENGTH // 36


def summarize(actions: ActionQuerySet, counts: Mapping[str, int]) -> str | None:
    """Return how many actions failed and were reverted, and which were skipped, by whom or why; None if none.

    It begins with the sentence that existing clients know. ``counts`` gives the number of actions in each state.
    """
    skipped, failed = counts.get(Action.State.SKIPPED, 0), counts.get(Action.State.FAILED, 0)
    sentences = [SKIPPED] if skipped else []
    if failed:
        sentences += [f"{count(failed)} failed.", *reverts(actions)]
    text = " ".join(sentences)
    if skipped:
        first = actions.present().filter(state=Action.State.SKIPPED).order_by("pk")[:NAMEABLE]
        text += " " + name(first, skipped, STATUS_MESSAGE_LENGTH - len(text) - 1)
    return text or None


def count(number: int) -> str:
    return "1 action" if number == 1 else f"{number} actions"


def reverts(actions: ActionQuerySet) -> list[str]:
    """Return what a rollback did, if there was one."""
    results = list(actions.filter(events__event="revert").values_list("events__result", flat=True))
    undone = results.count("Success")
    if not results:
        return []
    sentence = f"{count(undone)} reverted"
    return [f"{sentence}, {len(results) - undone} could not be." if undone < len(results) else f"{sentence}."]


def name(skipped: Iterable[Action], total: int, room: int) -> str:
    """Return the actions with who or why, as many as the room allows, then how many more there are."""
    names: list[str] = []
    for action in skipped:
        rest = f" and {total - len(names) - 1} more." if len(names) + 1 < total else "."
        addition = f"{action.uuid} {describe(action)}"
        if not names:
            addition = cut(addition, room - len(rest))
        if len(", ".join([*names, addition])) + len(rest) > room:
            break
        names.append(addition)
    more = total - len(names)
    return ", ".join(names) + (f" and {more} more." if more else ".")


def describe(action: Action) -> str:
    if action.skipped_by:
        return f"by {action.skipped_by}"
    return (action.status_message or "").removeprefix(SKIPPED_AUTOMATICALLY).strip()
