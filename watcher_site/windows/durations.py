"""Texts for durations."""

from collections.abc import Callable
from datetime import timedelta

from django.utils.formats import number_format
from django.utils.translation import gettext, ngettext

MINUTE, HOUR, DAY = 60, 3600, 86_400
# The limit in seconds below which tenths of a second are shown.
SHORT = 10


def describe_duration(duration: timedelta, gettext: Callable[[str], str] = gettext) -> str:
    """Return a duration in its two largest units: ``0.4 s``, ``34 s``, ``3 min 20 s``, ``2 h 5 min``, ``3 d 4 h``.

    Args:
        gettext: the translation of a text. The caller passes a cached one for many durations.
    """
    exact = max(duration.total_seconds(), 0.0)
    if exact < SHORT - 0.05:
        return gettext("%(seconds)s s") % {"seconds": number_format(round(exact, 1), 1)}
    seconds = round(exact)
    if seconds < MINUTE:
        return gettext("%(seconds)s s") % {"seconds": seconds}
    if seconds < HOUR:
        return gettext("%(minutes)d min %(seconds)d s") % {"minutes": seconds // MINUTE, "seconds": seconds % MINUTE}
    if seconds < DAY:
        return gettext("%(hours)d h %(minutes)d min") % {"hours": seconds // HOUR, "minutes": seconds % HOUR // MINUTE}
    return gettext("%(days)d d %(hours)d h") % {"days": seconds // DAY, "hours": seconds % DAY // HOUR}


def in_minutes(duration: timedelta) -> str:
    """Return an estimated duration, rounded to minutes: ``12 minutes``, ``2 h 5 min``."""
    minutes = max(round(duration.total_seconds() / MINUTE), 1)
    if minutes * MINUTE >= HOUR:
        return describe_duration(timedelta(minutes=minutes))
    return ngettext("%(minutes)d minute", "%(minutes)d minutes", minutes) % {"minutes": minutes}
