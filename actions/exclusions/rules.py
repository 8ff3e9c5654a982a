"""A rule as it is applied: nothing but what it says, ready to be compared."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import structlog

from actions.models.exclusions import Exclusion
from watcher_site.refusals import Invalid
from watcher_site.windows.maintenance import Window
from watcher_site.windows.wall_clock import read_window, read_zone

log = structlog.get_logger(__name__)
Touched = Mapping[str, Mapping[str, str]]
"""What an action touches: by kind, the names by the identifiers."""


@dataclass(frozen=True)
class Rule:
    """A rule in memory; ``key`` is None for one that is only tried."""

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
            targets={kind: frozenset(found) for kind, found in exclusion.targets.items() if found},
            window=window_of(exclusion),
            expires_at=exclusion.expires_at,
            enabled=exclusion.enabled,
        )

    @property
    def is_standing(self) -> bool:
        """Return whether the rule has no window and no expiry, and thus is in force when a plan runs, too."""
        return self.window is None and self.expires_at is None

    def is_in_force(self, moment: datetime) -> bool:
        is_over = self.expires_at is not None and moment >= self.expires_at
        return self.enabled and not is_over and (self.window is None or self.window.is_open(moment))

    def next_in_force(self, moment: datetime) -> datetime | None:
        """Return the first moment from this one on at which it is in force; None, if there is no such moment."""
        opening = moment if self.window is None else self.window.opening(moment)
        return opening if opening is not None and self.is_in_force(opening) else None

    def concerns(self, action_type: str) -> bool:
        return not self.action_types or action_type in self.action_types

    def matches(self, touched: Touched) -> bool:
        """Return whether the rule excludes an action of its types: one target of each named kind is affected."""
        return all(named & touched.get(kind, {}).keys() for kind, named in self.targets.items())

    def found_in(self, touched: Touched) -> dict[str, dict[str, str]]:
        """Return the targets of the rule that an action affects."""
        return {
            kind: {one: touched[kind][one] for one in sorted(named & touched.get(kind, {}).keys())}
            for kind, named in self.targets.items()
        }

    @property
    def words(self) -> str:
        """Return the sentence about the rule for an action that it excludes."""
        return f"It is {self.as_excluding}"

    @property
    def as_excluding(self) -> str:
        return f"excluded by '{self.name}'.{f' Reason: {self.reason}' if self.reason else ''}"


def window_of(exclusion: Exclusion) -> Window | None:
    """Return the hours of a rule: all, where a zone is unknown on this machine, as too much does less harm."""
    try:
        return read_window(exclusion.window, read_zone(exclusion.zone))
    except Invalid as problem:
        log.error("window of an exclusion is unreadable", exclusion=str(exclusion.uuid), problem=str(problem))
        return None
