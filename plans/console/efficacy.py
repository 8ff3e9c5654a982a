"""The efficacy of a plan for users: indicators that have values before and after side by side, the others alone.

The names are those of the infra-optim goals (`audits.goals`); indicators of other goals are shown as they are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from plans.models import ActionPlan, EfficacyIndicator
from watcher_site.messages import Text

Values = Mapping[str, float]


@dataclass(frozen=True)
class Comparison:
    """One quantity before the plan and after it, computed from the indicators in ``needs``."""

    label: Text
    needs: tuple[str, ...]
    before: Callable[[Values], float]
    after: Callable[[Values], float]
    unit: str = ""


COMPARISONS = (
    Comparison(
        _("Active compute nodes"),
        ("compute_nodes_count", "released_compute_nodes_count"),
        lambda values: values["compute_nodes_count"],
        lambda values: values["compute_nodes_count"] - values["released_compute_nodes_count"],
    ),
    Comparison(
        _("Standard deviation of the node loads"),
        ("standard_deviation_before_audit", "standard_deviation_after_audit"),
        lambda values: values["standard_deviation_before_audit"],
        lambda values: values["standard_deviation_after_audit"],
    ),
    *(
        Comparison(
            what,
            (name, f"planned_{name}"),
            lambda values, name=name: values[name],  # type: ignore[misc]
            lambda values, name=name: values[name] - values[f"planned_{name}"],  # type: ignore[misc]
        )
        for name, what in (
            ("live_migrate_instance_count", _("Running servers to move")),
            ("cold_migrate_instance_count", _("Stopped servers to move")),
            ("volume_migrate_count", _("Free volumes to move")),
            ("volume_update_count", _("Volumes in use to move")),
        )
    ),
)


@dataclass
class Efficacy:
    """The content of the page: rows of (label, before, after, unit), and single values with their descriptions."""

    compared: list[tuple[Text, float, float, str]]
    indicators: list[EfficacyIndicator]
    overall: list[Mapping[str, Any]]

    def __bool__(self) -> bool:
        return bool(self.compared or self.indicators or self.overall)


def efficacy_of(plan: ActionPlan) -> Efficacy:
    """Return the efficacy of a plan, as predicted by its audit, in one query."""
    indicators = list(plan.efficacy_indicators.all())
    values = {indicator.name: indicator.value for indicator in indicators}
    fitting = [comparison for comparison in COMPARISONS if all(name in values for name in comparison.needs)]
    # Quantities that are zero before and after are omitted.
    compared = [(one.label, one.before(values), one.after(values), one.unit) for one in fitting]
    shown = {name for comparison in fitting for name in comparison.needs}
    return Efficacy(
        [row for row in compared if row[1] or row[2]],
        [indicator for indicator in indicators if indicator.name not in shown],
        [one for one in plan.global_efficacy if one["value"] or len(plan.global_efficacy) == 1],
    )
