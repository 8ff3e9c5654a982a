"""Rules in memory, the cache of the enabled rules, and descriptions of rules.

Beginning an action takes no additional statement to check the cache: the statement that begins it changes no row if
the rules have changed since the action was compared with them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

import structlog
from django.db import connection
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from actions.exclusions.targets import COUNTED
from actions.messages import EXCLUDED, EXCLUDED_BECAUSE, EXCLUDED_BY, EXCLUDED_BY_BECAUSE
from actions.models.exclusions import Exclusion, ExclusionRevision
from watcher_site.database.queries import Bound
from watcher_site.refusals import Invalid
from watcher_site.windows.maintenance import Window
from watcher_site.windows.wall_clock import read_window, read_zone, require_zone

log = structlog.get_logger(__name__)
AffectedTargets = Mapping[str, Mapping[str, str]]
"""The objects that an action affects: by kind, names by identifier."""
TABLE = ExclusionRevision._meta.db_table


@dataclass(frozen=True)
class Rule:
    """A rule in memory; ``key`` is None for an unsaved rule in a trial."""

    key: int | None
    uuid: UUID
    name: str
    reason: str
    action_types: frozenset[str]
    targets: Mapping[str, frozenset[str]]
    window: Window | None
    expires_at: datetime | None
    enabled: bool

    @classmethod
    def of(cls, exclusion: Exclusion) -> "Rule":
        return cls(
            key=exclusion.pk,
            uuid=exclusion.uuid,
            name=exclusion.name,
            reason=exclusion.reason,
            action_types=frozenset(exclusion.action_types),
            targets={kind: frozenset(identifiers) for kind, identifiers in exclusion.targets.items() if identifiers},
            window=window_of(exclusion),
            expires_at=exclusion.expires_at,
            enabled=exclusion.enabled,
        )

    @property
    def is_permanent(self) -> bool:
        """Return whether the rule has no window and no expiry, so that it is in force at any time."""
        return self.window is None and self.expires_at is None

    def is_in_force(self, moment: datetime) -> bool:
        is_over = self.expires_at is not None and moment >= self.expires_at
        return self.enabled and not is_over and (self.window is None or self.window.is_open(moment))

    def next_in_force(self, moment: datetime) -> datetime | None:
        """Return the first moment from this one on at which the rule is in force, or None."""
        opening = moment if self.window is None else self.window.opening(moment)
        return opening if opening is not None and self.is_in_force(opening) else None

    def applies_to(self, action_type: str) -> bool:
        return not self.action_types or action_type in self.action_types

    def matches(self, affected: AffectedTargets) -> bool:
        """Return whether the action affects a target of each kind in the rule."""
        return all(identifiers & affected.get(kind, {}).keys() for kind, identifiers in self.targets.items())

    def found_in(self, affected: AffectedTargets) -> dict[str, dict[str, str]]:
        """Return the targets of the rule that an action affects."""
        return {
            kind: {
                identifier: affected[kind][identifier]
                for identifier in sorted(identifiers & affected.get(kind, {}).keys())
            }
            for kind, identifiers in self.targets.items()
        }

    @property
    def message(self) -> str:
        """Return the message of an action that the rule excludes."""
        message = EXCLUDED_BECAUSE if self.reason else EXCLUDED
        return message.fill(name=self.name, reason=self.reason)

    @property
    def description(self) -> str:
        message = EXCLUDED_BY_BECAUSE if self.reason else EXCLUDED_BY
        return message.fill(name=self.name, reason=self.reason)


def window_of(exclusion: Exclusion) -> Window | None:
    """Return the window of a rule, or None (all hours) if its zone is unknown on this machine."""
    try:
        return read_window(exclusion.window, read_zone(exclusion.zone))
    except Invalid as problem:
        log.error("invalid window of exclusion", exclusion=str(exclusion.uuid), problem=str(problem))
        return None


@dataclass(frozen=True)
class Rules:
    """The enabled rules, and the mark of the table, which is None before the first rule is created."""

    mark: UUID | None = None
    rules: tuple[Rule, ...] = ()

    @property
    def unchanged(self) -> Bound:
        """Return the query that returns a row unless a rule was added, changed or deleted."""
        if self.mark is None:
            return Bound(f"SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM {TABLE})", [])  # noqa: S608
        mark = ExclusionRevision._meta.get_field("mark").get_db_prep_value(self.mark, connection)
        return Bound(f"SELECT 1 FROM {TABLE} WHERE mark = %s", [mark])  # noqa: S608


cache: Rules | None = None


def cached_rules() -> Rules:
    """Return the rules that this process read last. The caller checks that they are `unchanged`."""
    return cache or current_rules()


def current_rules() -> Rules:
    """Return the current rules: one query, and another one if they have changed since this process read them.

    The mark is read first, so that a change between the two queries causes only another reading.
    """
    global cache
    mark = ExclusionRevision.objects.values_list("mark", flat=True).first()
    rules = cache
    if rules is None or rules.mark != mark:
        present = Exclusion.objects.enabled().order_by("pk") if mark else ()
        rules = cache = Rules(mark, tuple(map(Rule.of, present)))
    return rules


def describe_force(exclusion: Exclusion) -> str:
    now = timezone.now()
    if not exclusion.enabled:
        return gettext("disabled")
    if exclusion.expires_at and exclusion.expires_at <= now:
        return gettext("expired")
    return gettext("now") if Rule.of(exclusion).is_in_force(now) else gettext("not now")


def describe_expiry(exclusion: Exclusion) -> str:
    """Return a text about the expiry of a rule in the zone of its window, or "" if it does not expire."""
    if not exclusion.expires_at:
        return ""
    zone = require_zone(exclusion.zone)
    return f"until {exclusion.expires_at.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M} ({zone})"


def describe_scope(exclusion: Exclusion) -> str:
    """Return a summary of action types and targets, such as "migrate, resize on 2 servers"."""
    types = ", ".join(exclusion.action_types) or gettext("every action")
    counts = [
        COUNTED[kind] % {"count": len(identifiers), "number": number_format(len(identifiers))}
        for kind, identifiers in exclusion.targets.items()
    ]
    return _("%(types)s on %(targets)s") % {"types": types, "targets": ", ".join(counts)} if counts else types
