"""Action plans."""

from plans.models.action_plans import ActionPlan, EfficacyIndicator

__all__ = [
    "ActionPlan",
    "EfficacyIndicator",
]
