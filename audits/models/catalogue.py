"""The catalogue of audits: goals, strategies, scoring engines, and audit templates."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Upper

from audits.models.querysets import NamedQuerySet
from watcher_site.database.records import NullsFirst, Record

NAME_LENGTH = 63


def unique_name(constraint: str) -> models.UniqueConstraint:
    """Return the constraint that names are unique among rows that are not deleted, ignoring case."""
    return models.UniqueConstraint(Upper("name"), condition=Q(deleted_at=None), name=constraint)


class Named(Record):
    """A record with a name."""

    name = models.CharField(max_length=NAME_LENGTH)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name


class Goal(Named):
    """A goal of audits."""

    display_name = models.CharField(max_length=NAME_LENGTH)
    efficacy_specification = models.JSONField(
        default=list, help_text="name, description, unit and schema of each indicator of its strategies"
    )

    objects = NamedQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index("name", "id", name="goal_name_sort"),
            models.Index("display_name", "id", name="goal_display_name"),
            models.Index("created_at", "id", name="goal_created_at"),
            models.Index(NullsFirst("updated_at"), "id", name="goal_updated_at"),
        ]
        constraints = [unique_name("goal_name")]


class Strategy(Named):
    """The row of a strategy plug-in, which pursues a goal."""

    display_name = models.CharField(max_length=NAME_LENGTH)
    goal = models.ForeignKey(Goal, models.CASCADE, related_name="strategies")
    parameters_spec = models.JSONField(default=dict, help_text="JSON Schema of the parameters")

    objects = NamedQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index("name", "id", name="strategy_name_sort"),
            models.Index("display_name", "id", name="strategy_display_name"),
            models.Index("created_at", "id", name="strategy_created_at"),
            models.Index(NullsFirst("updated_at"), "id", name="strategy_updated_at"),
        ]
        constraints = [unique_name("strategy_name")]


class ScoringEngine(Named):
    """The row of a scoring engine plug-in, which converts features into a score."""

    description = models.CharField(max_length=255, default="", blank=True)
    metainfo = models.TextField(default="", blank=True)

    objects = NamedQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index("name", "id", name="scoring_engine_name_sort"),
            models.Index("description", "id", name="scoring_engine_description"),
            models.Index("created_at", "id", name="scoring_engine_created_at"),
            models.Index(NullsFirst("updated_at"), "id", name="scoring_engine_updated_at"),
        ]
        constraints = [unique_name("scoring_engine_name")]


class AuditTemplate(Named):
    """A goal, a strategy and a scope from which audits are created."""

    description = models.CharField(max_length=255, null=True, blank=True)
    goal = models.ForeignKey(Goal, models.CASCADE, related_name="audit_templates")
    strategy = models.ForeignKey(Strategy, models.SET_NULL, null=True, related_name="audit_templates")
    scope = models.JSONField(default=list)
    default_parameters = models.JSONField(default=dict)

    objects = NamedQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index("name", "id", name="audit_template_name_sort"),
            models.Index("created_at", "id", name="audit_template_created_at"),
            models.Index(NullsFirst("updated_at"), "id", name="audit_template_updated_at"),
        ]
        constraints = [unique_name("audit_template_name")]
