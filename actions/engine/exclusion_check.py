"""The check of exclusions before a worker begins an action."""

from datetime import datetime

from django.utils import timezone

from actions.exclusions.matching import excluded
from actions.exclusions.rules import Rule, cached_rules, current_rules
from actions.models import Action
from actions.types.base import ActionSkipException
from watcher_site.database.queries import Bound


class ActionExcluded(ActionSkipException):
    """A rule keeps the action from being executed."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule.words)
        self.rule = rule


class ExclusionCheck:
    """The check of one action against the exclusions, from its pre_condition until it begins."""

    def __init__(self, action: Action) -> None:
        self.action = action
        self.rules = cached_rules()
        self.judged: set[int | None] = set()

    @property
    def unchanged(self) -> Bound:
        """Return the condition for the statement that begins the action, which fails if the rules have changed."""
        return self.rules.unchanged

    def check(self) -> None:
        """Judge the action by the rules that are in force now, as far as it was not yet.

        Raises:
            ActionExcluded: one of them excludes it.
        """
        if self.find() is None:
            return
        # Nothing is left out for a rule that is no more.
        self.rules = current_rules()
        self.judged.clear()
        if rule := self.find():
            raise ActionExcluded(rule)

    def find(self) -> Rule | None:
        """Return the rule that excludes the action, if one of those that it was not judged by yet does."""
        rules = [rule for rule in in_force(self.rules.rules, timezone.now()) if rule.key not in self.judged]
        if not rules:
            return None
        found = excluded([self.action], rules).get(self.action.uuid)
        self.judged.update(rule.key for rule in rules)
        return found.rule if found else None

    def is_outdated(self) -> bool:
        """Return whether the rules have changed since they were read."""
        return current_rules() is not self.rules


def in_force(rules: tuple[Rule, ...], moment: datetime) -> list[Rule]:
    return [rule for rule in rules if rule.is_in_force(moment)]
