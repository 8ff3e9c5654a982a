"""Action plans, and the results of their preflights."""

from plans.models.action_plans import ActionPlan, EfficacyIndicator
from plans.models.preflight_results import PreflightResult

__all__ = [
    "ActionPlan",
    "EfficacyIndicator",
    "PreflightResult",
]
