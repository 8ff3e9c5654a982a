"""Rules in a few words, for lists."""

from django.template.defaultfilters import pluralize
from django.utils import timezone

from actions.exclusions.kinds import KINDS
from actions.exclusions.models import Exclusion
from actions.exclusions.rules import Rule


def force_in_words(exclusion: Exclusion) -> str:
    now = timezone.now()
    if not exclusion.enabled:
        return "disabled"
    if exclusion.expires_at and exclusion.expires_at <= now:
        return "expired"
    return "now" if Rule.of(exclusion).is_in_force(now) else "not now"


def what_in_words(exclusion: Exclusion) -> str:
    """Return which actions on how many things, such as "migrate, resize on 2 servers"."""
    types = ", ".join(exclusion.action_types) or "every action"
    named = [f"{len(found)} {KINDS[kind][0]}{pluralize(found)}" for kind, found in exclusion.targets.items()]
    return f"{types} on {', '.join(named)}" if named else types
