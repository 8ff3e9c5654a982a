"""Tests of exclusions: the actions of a plan that a rule excludes, and the reasons. Writes no rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.utils import timezone

from actions.exclusions.matching import Match, find_excluded
from actions.exclusions.rules import Rule
from actions.models import Action
from actions.models.exclusions import Exclusion
from plans.models import ActionPlan
from watcher_site.windows.wall_clock import read_moment, read_zone

THE_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Trial:
    """The result of a test: the actions that the rule excludes, in any state, in the order of their creation."""

    rule: Rule
    moment: datetime
    total: int
    """The number of actions of the plan."""
    found: Sequence[tuple[Action, Match]]

    @property
    def is_in_force(self) -> bool:
        """Whether the rule is in force at the time of the test."""
        return self.rule.is_in_force(self.moment)

    @property
    def in_force_from(self) -> datetime | None:
        """The first time from then on at which the rule is in force, or None."""
        return self.rule.next_in_force(self.moment)


def try_rule(exclusion: Exclusion, plan: ActionPlan, at: str | None = None) -> Trial:
    """Return the actions of a plan that a rule excludes. The rule may be unsaved, as from `draft_exclusion`.

    The number of queries is constant, except for one more for every few thousand actions.

    Args:
        at: a time in ISO 8601, in the time zone of the rule if it has no offset; by default now.

    Raises:
        Invalid: ``at`` is not a valid time.
    """
    moment = read_moment("at", at, read_zone(exclusion.zone), THE_BEGINNING) or timezone.now()
    rule = Rule.of(exclusion)
    actions = list(plan.actions.present().order_by("pk"))
    matches = find_excluded(actions, [rule])
    found = [(action, matches[action.uuid]) for action in actions if action.uuid in matches]
    return Trial(rule, moment, len(actions), found)


def describe_trial(trial: Trial) -> str:
    """Return the result as text for a terminal: a line for each action, and their number."""
    listed = [f"{one.state:<9}  {one.uuid}  {one.called}  {match.target_names}".rstrip() for one, match in trial.found]
    return "\n".join([*listed, f"Excluded: {len(trial.found)} of {trial.total}. {describe_force(trial)}"])


def describe_force(trial: Trial) -> str:
    if not trial.rule.enabled:
        return "The exclusion is disabled."
    if trial.is_in_force:
        return "The exclusion is in force now."
    begins = trial.in_force_from
    return f"The exclusion is in force from {begins:%Y-%m-%d %H:%M} UTC on." if begins else "The exclusion is over."
