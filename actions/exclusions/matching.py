"""Match many actions with the rules."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from actions.exclusions.affected import Actionlike, touched_by
from actions.exclusions.rules import Rule, Touched
from actions.exclusions.targets import KINDS

One = TypeVar("One", bound=Actionlike)


@dataclass(frozen=True)
class Match:
    """A rule that excludes an action, with the targets of the rule that the action affects."""

    rule: Rule
    touched: Touched

    @property
    def why(self) -> str:
        """Return the targets that the action affects as a text, empty if the rule names no targets."""
        return ", ".join(
            f"{KINDS[kind][0]} {name if name == identifier else f'{name} ({identifier})'}"
            for kind, found in self.touched.items()
            for identifier, name in found.items()
        )


def excluded(actions: Sequence[One], rules: Iterable[Rule]) -> dict[UUID, Match]:
    """Return by action the first of these rules that excludes it. Their hours are not looked at.

    The number of queries depends on neither; without a rule that names anything, there is none.
    """
    found: dict[UUID, Match] = {}
    concerned = [(rule, [one for one in actions if rule.concerns(one.action_type)]) for rule in rules]
    concerned = [(rule, those) for rule, those in concerned if those]
    if not concerned:
        return found
    kinds = {kind for rule, _ in concerned for kind in rule.targets}
    any_of = {one.uuid: one for _, those in concerned for one in those}
    touched = touched_by(list(any_of.values()), kinds)
    for rule, those in concerned:
        for one in those:
            if one.uuid not in found and rule.matches(touched[one.uuid]):
                found[one.uuid] = Match(rule, rule.found_in(touched[one.uuid]))
    return found
