"""Restoring what a rule skipped when its plan was made, once the rule is no more."""

from collections.abc import Sequence

from django.utils import timezone

from actions.exclusions.cached_rules import standing_rules
from actions.exclusions.matching import excluded
from actions.models import Action, is_excluded
from watcher_site.refusals import Conflict


def require_lifted(actions: Sequence[Action]) -> None:
    """Refuse to restore what rules skipped that would be skipped again, were its plan made now.

    Raises:
        Conflict: the message names the action and the rule.
    """
    skipped = [action for action in actions if is_excluded(action)]
    if not skipped:
        return
    now = timezone.now()
    rules = [rule for rule in standing_rules().rules if rule.is_standing and rule.is_in_force(now)]
    for uuid, match in excluded(skipped, rules).items():
        raise Conflict(f"Action {uuid} cannot be restored: it is still excluded by '{match.rule.name}'.")
