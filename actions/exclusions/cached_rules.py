"""The rules that are enabled, kept in the memory of each process for as long as nobody changes them.

To begin an action costs no statement more: the one that begins it finds no row where the rules are no longer those
that it was judged by.
"""

from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from actions.exclusions.rules import Rule
from actions.models.exclusions import Exclusion, ExclusionRevision
from watcher_site.database.statements import Bound

TABLE = ExclusionRevision._meta.db_table


@dataclass(frozen=True)
class Rules:
    """All rules that are enabled, and the mark of the table; none, while there never was a rule."""

    mark: UUID | None = None
    rules: tuple[Rule, ...] = ()

    @property
    def unchanged(self) -> Bound:
        """The query that finds a row while no rule was added, changed or deleted."""
        if self.mark is None:
            return Bound(f"SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM {TABLE})", [])  # noqa: S608
        mark = ExclusionRevision._meta.get_field("mark").get_db_prep_value(self.mark, connection)
        return Bound(f"SELECT 1 FROM {TABLE} WHERE mark = %s", [mark])  # noqa: S608


held: Rules | None = None


def held_rules() -> Rules:
    """Return the rules as this process read them last. The caller makes sure that they are `unchanged`."""
    return held or standing_rules()


def standing_rules() -> Rules:
    """Return the rules as they are now: one query, and another where they were changed since this process read them.

    The mark comes first: what changes between the two is read, and then read once more.
    """
    global held
    mark = ExclusionRevision.objects.values_list("mark", flat=True).first()
    rules = held
    if rules is None or rules.mark != mark:
        present = Exclusion.objects.enabled().order_by("pk") if mark else ()
        rules = held = Rules(mark, tuple(map(Rule.of, present)))
    return rules
