"""Goals, the strategies that pursue them, the templates of audits, and audits."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Upper
from django_fsm import FSMField, transition

from audits.querysets import AuditQuerySet, NamedQuerySet
from watcher_site.messages import STATUS_MESSAGE_LENGTH, cut
from watcher_site.models import Service
from watcher_site.records import NullsFirst, Record
from watcher_site.state import StatefulModel

NAME_LENGTH = 63


def unique_name(constraint: str) -> models.UniqueConstraint:
    """Names are unique among what was not deleted, whatever their letter case."""
    return models.UniqueConstraint(Upper("name"), condition=Q(deleted_at=None), name=constraint)


class Named(Record):
    """A record that people call by a name."""

    name = models.CharField(max_length=NAME_LENGTH)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name


class Goal(Named):
    """What an audit is to achieve."""

    display_name = models.CharField(max_length=NAME_LENGTH)
    efficacy_specification = models.JSONField(
        default=list, help_text="the indicators that its strategies compute: name, description, unit, schema"
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
    """A way to pursue a goal: the row of a strategy plug-in."""

    display_name = models.CharField(max_length=NAME_LENGTH)
    goal = models.ForeignKey(Goal, models.CASCADE, related_name="strategies")
    parameters_spec = models.JSONField(default=dict, help_text="the JSON Schema of its parameters")

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
    """A plug-in that turns features of the cloud into a score."""

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
    """A goal, a strategy and a scope that audits are made from again and again."""

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


class Audit(StatefulModel, Named):
    """A question to the cloud, whose answer is an action plan. States and arrows: design section 3."""

    class Type(models.TextChoices):
        ONESHOT = "ONESHOT"
        CONTINUOUS = "CONTINUOUS"
        EVENT = "EVENT"

    class State(models.TextChoices):
        PENDING = "PENDING"
        ONGOING = "ONGOING"
        SUCCEEDED = "SUCCEEDED"
        FAILED = "FAILED"
        CANCELLED = "CANCELLED"
        SUSPENDED = "SUSPENDED"

    DELETABLE = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED, State.SUSPENDED})
    FINAL = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED})

    # A decision engine whose lease ran out no longer owns the audit, and can no longer write.
    guard_fields = ["state", "decision_engine"]
    transition_fields = ["state", "status_message", "decision_engine", "hostname"]

    audit_type = models.CharField(max_length=20, choices=Type)
    state = FSMField(max_length=20, choices=State, default=State.PENDING, protected=True, editable=False)
    status_message = models.CharField(max_length=STATUS_MESSAGE_LENGTH, null=True)
    goal = models.ForeignKey(Goal, models.CASCADE, related_name="audits")
    strategy = models.ForeignKey(Strategy, models.SET_NULL, null=True, related_name="audits")
    parameters = models.JSONField(default=dict)
    interval = models.CharField(max_length=36, null=True, help_text="seconds, or a cron expression in UTC")
    scope = models.JSONField(default=list)
    auto_trigger = models.BooleanField(default=False)
    force = models.BooleanField(default=False, help_text="run although an action plan is ONGOING")
    next_run_time = models.DateTimeField(null=True)
    start_time = models.DateTimeField(null=True)
    end_time = models.DateTimeField(null=True)
    hostname = models.CharField(max_length=255, null=True, help_text="of the decision engine that runs it, or ran it")
    decision_engine = models.ForeignKey(Service, models.SET_NULL, null=True, related_name="audits")

    objects = AuditQuerySet.as_manager()

    class Meta:
        permissions = [("trigger_audit", "Can trigger audit")]
        indexes = [
            # The decision engine looks for waiting and running audits; people sort by state.
            models.Index("state", "id", name="audit_state"),
            models.Index("name", "id", name="audit_name_sort"),
            models.Index("audit_type", "id", name="audit_type"),
            models.Index("created_at", "id", name="audit_created_at"),
            models.Index(NullsFirst("updated_at"), "id", name="audit_updated_at"),
        ]
        constraints = [unique_name("audit_name")]

    @transition(field=state, source=State.PENDING, target=State.ONGOING)
    def start(self, decision_engine: Service) -> None:
        """A decision engine claims it."""
        self.decision_engine, self.hostname = decision_engine, decision_engine.host

    @transition(field=state, source=State.ONGOING, target=State.SUCCEEDED)
    def succeed(self) -> None:
        """Its plan was made."""
        self.decision_engine = None

    @transition(field=state, source=State.ONGOING, target=State.FAILED)
    def fail(self, reason: str) -> None:
        self.status_message, self.decision_engine = cut(reason), None

    @transition(field=state, source=[State.PENDING, State.ONGOING], target=State.CANCELLED)
    def cancel(self, message: str) -> None:
        self.status_message, self.decision_engine = cut(message), None

    def remove(self) -> None:
        """Delete it, so that it can still be looked back on until it is purged. Its plans stay.

        Raises:
            Invalid: it is waiting or running.
            NotFound: someone else deleted it.
        """
        if not type(self).objects.filter(pk=self.pk, state__in=self.DELETABLE).soft_delete():
            raise self.undeletable()
