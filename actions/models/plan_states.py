"""The states of action plans, which the actions app uses (docs/compatibility.md, "Action plan states")."""

from django.db import models


class PlanState(models.TextChoices):
    RECOMMENDED = "RECOMMENDED"
    PENDING = "PENDING"
    ONGOING = "ONGOING"
    CANCELLING = "CANCELLING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    SUPERSEDED = "SUPERSEDED"


RUNNING_PLAN = frozenset({PlanState.ONGOING, PlanState.CANCELLING})
# The states before a plan begins, in which its actions can be skipped and restored.
PRUNABLE_PLAN = frozenset({PlanState.RECOMMENDED, PlanState.PENDING})
