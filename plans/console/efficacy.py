"""The efficacy of a plan for users: indicators that have values before and after side by side, the others alone.

The names are those of the infra-optim goals (`audits.goals`); indicators of other goals are shown as they are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from plans.models import ActionPlan, EfficacyIndicator

Values = Mapping[str, float]


@dataclass(frozen=True)
class Comparison:
    """One quantity before the plan and after it, computed from the indicators in ``needs``."""

    label: str
    needs: tuple[str, ...]
    before: Callable[[Values], float]
    after: Callable[[Values], float]
    unit: str = ""


COMPARISONS = (
    Comparison(
        "Active compute nodes",
        ("compute_nodes_count", "released_compute_nodes_count"),
        lambda values: values["compute_nodes_count"],
        lambda values: values["compute_nodes_count"] - values["released_compute_nodes_count"],
    ),
    Comparison(
        "Standard deviation of the node loads",
        ("standard_deviation_before_audit", "standard_deviation_after_audit"),
        lambda values: values["standard_deviation_before_audit"],
        lambda values: values["standard_deviation_after_audit"],
    ),
    *(
        Comparison(
            f"{what} to move",
            (name, f"planned_{name}"),
            lambda values, name=name: values[name],  # type: ignore[misc]
            lambda values, name=name: values[name] - values[f"planned_{name}"],  # type: ignore[misc]
        )
        for name, what in (
            ("live_migrate_instance_count", "Running servers"),
            ("cold_migrate_instance_count", "Stopped servers"),
            ("volume_migrate_count", "Free volumes"),
            ("volume_update_count", "Volumes in use"),
        )
    ),
)


@dataclass
class Efficacy:
    """The content of the page: rows of (label, before, after, unit), and single numbers with their descriptions."""

    compared: list[tuple[str, float, float, str]]
    indicators: list[EfficacyIndicator]
    overall: list[Mapping[str, Any]]

    def __bool__(self) -> bool:
        return bool(self.compared or self.indicators or self.overall)


def efficacy_of(plan: ActionPlan) -> Efficacy:
    """Return what an audit promised of its plan, in one query."""
    indicators = list(plan.efficacy_indicators.all())
    values = {indicator.name: indicator.value for indicator in indicators}
    fitting = [comparison for comparison in COMPARISONS if all(name in values for name in comparison.needs)]
    # What there is none of, before as after, tells nothing.
    compared = [(one.label, one.before(values), one.after(values), one.unit) for one in fitting]
    shown = {name for comparison in fitting for name in comparison.needs}
    return Efficacy(
        [row for row in compared if row[1] or row[2]],
        [indicator for indicator in indicators if indicator.name not in shown],
        [one for one in plan.global_efficacy if one["value"] or len(plan.global_efficacy) == 1],
    )
