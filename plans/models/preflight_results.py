"""The stored results of preflights, which all web processes read."""

from collections import Counter
from typing import Any

from django.db import models

from actions.models import Action
from plans.models.action_plans import ActionPlan

UNKNOWN = "UNKNOWN"
"""The outcome of an action whose final state cannot be predicted."""
OUTCOMES = (Action.State.SUCCEEDED, Action.State.SKIPPED, Action.State.FAILED, Action.State.CANCELLED, UNKNOWN)


class PreflightResult(models.Model):
    """The latest result of a plan's preflight, for users who may see the details of failures or for all others."""

    # No constraint: processes of the previous release, which do not have this table, purge plans.
    action_plan = models.ForeignKey(
        ActionPlan, models.CASCADE, related_name="preflight_results", db_index=False, db_constraint=False
    )
    shows_details = models.BooleanField(help_text="whether the messages contain the errors of derived actions")
    version = models.CharField(
        max_length=64,
        help_text="versions of the plan, the exclusions and the cloud from which the result was computed",
    )
    computed_at = models.DateTimeField()
    prospects = models.JSONField(help_text="key, outcome and message of each unfinished action, in order")
    ended = models.JSONField(default=dict, help_text="number of ended actions by state")
    is_mirrored = models.BooleanField(
        default=False, help_text="whether the result was computed from a copy of a real cloud"
    )
    read_at = models.DateTimeField(null=True, help_text="time of the last complete reading of that copy")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["action_plan", "shows_details"], name="preflight_result_of_plan")
        ]
        indexes = [models.Index("computed_at", name="preflight_result_computed_at")]

    def __str__(self) -> str:
        return f"{self.action_plan_id} {self.computed_at}"

    @property
    def total(self) -> int:
        return len(self.prospects)

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of actions with each of the `OUTCOMES`."""
        counts = Counter(outcome for _key, outcome, _message in self.prospects)
        return {str(outcome): counts[outcome] for outcome in OUTCOMES}

    def select(self, outcome: str = "") -> list[Any]:
        """Return the prospects with an outcome, or those of all actions that would not succeed."""
        if outcome:
            return [one for one in self.prospects if one[1] == outcome]
        return [one for one in self.prospects if one[1] != Action.State.SUCCEEDED]
