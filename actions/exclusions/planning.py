"""Find the excluded actions of a plan: when the plan is made, and by the current rules."""

from collections.abc import Sequence
from uuid import UUID

from django.utils import timezone

from actions.exclusions.cached_rules import standing_rules
from actions.exclusions.matching import Match, One, excluded
from watcher_site.refusals import Conflict


def excluded_for_good(actions: Sequence[One]) -> dict[UUID, Match]:
    """Return, by action, the rule without a window or an expiry that excludes it.

    Rules with a window or an expiry are left out: they are applied when the action is about to begin.
    """
    now = timezone.now()
    rules = [rule for rule in standing_rules().rules if rule.is_standing and rule.is_in_force(now)]
    return excluded(actions, rules)


def excluded_now(actions: Sequence[One]) -> dict[UUID, Match]:
    """Return by action the rule that would exclude it if it began now."""
    now = timezone.now()
    return excluded(actions, [rule for rule in standing_rules().rules if rule.is_in_force(now)])


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
    """Refuse what a person asks for to be done at once where a rule keeps it from being done.

    Raises:
        Conflict: the message names the rule.
    """
    for one in actions:
        if match := excluded_now([one]).get(one.uuid):
            raise Conflict(f"{one.action_type} cannot be done now: it is {match.rule.as_excluding}")
