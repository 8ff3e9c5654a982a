"""Rules in a few words, for lists."""

from zoneinfo import ZoneInfo

from django.template.defaultfilters import pluralize
from django.utils import timezone

from actions.exclusions.rules import Rule
from actions.exclusions.targets import KINDS
from actions.models.exclusions import Exclusion
from watcher_site.windows.wall_clock import require_zone


def force_in_words(exclusion: Exclusion) -> str:
    now = timezone.now()
    if not exclusion.enabled:
        return "disabled"
    if exclusion.expires_at and exclusion.expires_at <= now:
        return "expired"
    return "now" if Rule.of(exclusion).is_in_force(now) else "not now"


def expiry_in_words(exclusion: Exclusion) -> str:
    """Return until when a rule is in force, by the same clock as its hours; nothing, where that is for ever."""
    if not exclusion.expires_at:
        return ""
    zone = require_zone(exclusion.zone)
    return f"until {exclusion.expires_at.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M} ({zone})"


def what_in_words(exclusion: Exclusion) -> str:
    """Return a summary of actions and targets, such as "migrate, resize on 2 servers"."""
    types = ", ".join(exclusion.action_types) or "every action"
    named = [f"{len(found)} {KINDS[kind][0]}{pluralize(found)}" for kind, found in exclusion.targets.items()]
    return f"{types} on {', '.join(named)}" if named else types
