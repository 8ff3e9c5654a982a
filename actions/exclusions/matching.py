"""The actions that rules exclude: when their plan is made, now, and when they are restored."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from django.utils import timezone

from actions.exclusions.affected import Actionlike, touched_by
from actions.exclusions.rules import Rule, Touched, current_rules
from actions.exclusions.targets import KINDS
from actions.models import Action, is_excluded
from watcher_site.refusals import Conflict

One = TypeVar("One", bound=Actionlike)


@dataclass(frozen=True)
class Match:
    """A rule that excludes an action, with the targets of the rule that the action affects."""

    rule: Rule
    touched: Touched

    @property
    def why(self) -> str:
        """Return the targets that the action affects as a text, empty if the rule names no targets."""
        return ", ".join(
            f"{KINDS[kind][0]} {name if name == identifier else f'{name} ({identifier})'}"
            for kind, found in self.touched.items()
            for identifier, name in found.items()
        )


def excluded(actions: Sequence[One], rules: Iterable[Rule]) -> dict[UUID, Match]:
    """Return by action the first of these rules that excludes it, whatever their hours.

    The number of queries depends neither on the actions nor on the rules; there is none if no rule names a target.
    """
    found: dict[UUID, Match] = {}
    concerned = [(rule, [one for one in actions if rule.concerns(one.action_type)]) for rule in rules]
    concerned = [(rule, those) for rule, those in concerned if those]
    if not concerned:
        return found
    kinds = {kind for rule, _ in concerned for kind in rule.targets}
    any_of = {one.uuid: one for _, those in concerned for one in those}
    touched = touched_by(list(any_of.values()), kinds)
    for rule, those in concerned:
        for one in those:
            if one.uuid not in found and rule.matches(touched[one.uuid]):
                found[one.uuid] = Match(rule, rule.found_in(touched[one.uuid]))
    return found


def excluded_permanently(actions: Sequence[One]) -> dict[UUID, Match]:
    """Return, by action, the rule without a window or an expiry that excludes it.

    Rules with a window or an expiry are left out: they are applied when the action is about to begin.
    """
    now = timezone.now()
    rules = [rule for rule in current_rules().rules if rule.is_permanent and rule.is_in_force(now)]
    return excluded(actions, rules)


def excluded_now(actions: Sequence[One]) -> dict[UUID, Match]:
    """Return by action the rule that would exclude it if it began now."""
    now = timezone.now()
    return excluded(actions, [rule for rule in current_rules().rules if rule.is_in_force(now)])


def require_effect(action_type: str, derived: Sequence[One]) -> None:
    """Refuse an action that only derives others, if rules in force exclude all of these.

    Raises:
        Conflict: the message names the rule that excludes the first of them.
    """
    matches = excluded_now(derived)
    if derived and len(matches) == len(derived):
        first, rule = derived[0], matches[derived[0].uuid].rule
        raise Conflict(
            f"{action_type} cannot be done now: each action that it derives is excluded;"
            f" {first.action_type} is {rule.as_excluding}"
        )


def require_none_excluded(actions: Sequence[One]) -> None:
    """Refuse actions that a person requests to be executed at once, if a rule in force excludes one of them.

    Raises:
        Conflict: the message names the rule.
    """
    for one in actions:
        if match := excluded_now([one]).get(one.uuid):
            raise Conflict(f"{one.action_type} cannot be done now: it is {match.rule.as_excluding}")


def require_lifted(actions: Sequence[Action]) -> None:
    """Refuse to restore actions that rules skipped, if rules would skip them again in a plan that is made now.

    Raises:
        Conflict: the message names the action and the rule.
    """
    skipped = [action for action in actions if is_excluded(action)]
    if not skipped:
        return
    for uuid, match in excluded_permanently(skipped).items():
        raise Conflict(f"Action {uuid} cannot be restored: it is still excluded by '{match.rule.name}'.")
