import uuid

import django.db.models.deletion
import django.utils.timezone
import django_fsm
from django.db import migrations, models

import watcher_site.database.records


class Migration(migrations.Migration):
    """Create the tables without the columns of later migrations, and with the latest texts and permissions.

    It ends before 0011, which reads rows of the app `actions`, and which an existing site runs while it serves requests.
    """

    replaces = [
        ("plans", "0001_initial"),
        ("plans", "0002_continuations"),
        ("plans", "0003_on_failure"),
        ("plans", "0004_schedules"),
        ("plans", "0005_signals"),
        ("plans", "0006_calling_context"),
        ("plans", "0007_continuations_index"),
        ("plans", "0008_started_by"),
        ("plans", "0009_column_defaults"),
        ("plans", "0010_times"),
    ]

    initial = True

    dependencies = [
        ("audits", "0004_console_indexes"),
        ("watcher_site", "0002_sort_indexes"),
    ]

    operations = [
        migrations.CreateModel(
            name="ActionPlan",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                (
                    "state",
                    django_fsm.FSMField(
                        choices=[
                            ("RECOMMENDED", "Recommended"),
                            ("PENDING", "Pending"),
                            ("ONGOING", "Ongoing"),
                            ("CANCELLING", "Cancelling"),
                            ("SUCCEEDED", "Succeeded"),
                            ("FAILED", "Failed"),
                            ("CANCELLED", "Cancelled"),
                            ("SUPERSEDED", "Superseded"),
                        ],
                        default="RECOMMENDED",
                        editable=False,
                        max_length=20,
                        protected=True,
                    ),
                ),
                ("status_message", models.CharField(max_length=255, null=True)),
                ("global_efficacy", models.JSONField(default=list)),
                (
                    "hostname",
                    models.CharField(help_text="host of the last applier of the plan", max_length=255, null=True),
                ),
                (
                    "applier",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="action_plans",
                        to="watcher_site.service",
                    ),
                ),
                (
                    "audit",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="action_plans",
                        to="audits.audit",
                    ),
                ),
                (
                    "strategy",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="action_plans",
                        to="audits.strategy",
                    ),
                ),
                (
                    "continues",
                    models.ForeignKey(
                        db_index=False,
                        help_text="the plan whose unsuccessful actions this plan repeats",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="continuations",
                        to="plans.actionplan",
                    ),
                ),
                (
                    "on_failure",
                    models.CharField(
                        choices=[
                            ("continue", "dependent actions are executed"),
                            ("stop", "dependent actions fail or are cancelled, too"),
                        ],
                        db_default="continue",
                        default="continue",
                        max_length=20,
                    ),
                ),
                ("closes_at", models.DateTimeField(editable=False, null=True)),
                ("opens_at", models.DateTimeField(editable=False, null=True)),
                (
                    "start_at",
                    models.DateTimeField(help_text="time before which no action of the plan begins", null=True),
                ),
                (
                    "window",
                    models.JSONField(
                        help_text="the maintenance window in which the plan and its actions begin; null: any time",
                        null=True,
                    ),
                ),
                (
                    "zone",
                    models.CharField(
                        db_default="UTC",
                        default="UTC",
                        help_text="time zone of the times that users enter",
                        max_length=64,
                    ),
                ),
                (
                    "signals",
                    models.PositiveIntegerField(
                        db_default=0,
                        default=0,
                        editable=False,
                        help_text="number of signals to the plan and its actions; a change notifies the applier",
                    ),
                ),
                (
                    "suspended_by",
                    models.CharField(
                        editable=False,
                        help_text="the name of the user who suspended the plan; null: not suspended",
                        max_length=255,
                        null=True,
                    ),
                ),
                (
                    "context",
                    models.TextField(
                        editable=False,
                        help_text="the encrypted calling context of the start, until the plan ends",
                        null=True,
                    ),
                ),
                (
                    "project_id",
                    models.CharField(
                        editable=False, help_text="project of the start; null: unknown", max_length=255, null=True
                    ),
                ),
                (
                    "started_by",
                    models.CharField(
                        editable=False,
                        help_text="the name of the user who started the plan",
                        max_length=255,
                        null=True,
                    ),
                ),
                (
                    "start_time",
                    models.DateTimeField(
                        editable=False, help_text="time at which an applier claimed the plan", null=True
                    ),
                ),
                (
                    "end_time",
                    models.DateTimeField(
                        editable=False, help_text="time at which the plan reached its final state", null=True
                    ),
                ),
            ],
            options={
                "permissions": [
                    ("start_actionplan", "Can start action plan"),
                    ("cancel_actionplan", "Can cancel action plan"),
                    ("continue_actionplan", "Can continue action plan"),
                    ("approve_actionplan", "Can approve action plan"),
                ],
                "indexes": [
                    models.Index(models.F("state"), models.F("id"), name="action_plan_by_state"),
                    models.Index(models.F("created_at"), models.F("id"), name="action_plan_created_at"),
                    models.Index(
                        watcher_site.database.records.NullsFirst("updated_at"),
                        models.F("id"),
                        name="action_plan_updated_at",
                    ),
                    models.Index(
                        watcher_site.database.records.NullsFirst("hostname"),
                        models.F("id"),
                        name="action_plan_hostname",
                    ),
                    models.Index(
                        models.F("continues"),
                        condition=models.Q(("continues__isnull", False)),
                        name="action_plan_continues",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("continues"),
                        condition=models.Q(("continues__isnull", False), ("deleted_at", None)),
                        name="action_plan_continued_once",
                    )
                ],
            },
            bases=(django_fsm.ConcurrentTransitionMixin, models.Model),
        ),
        migrations.CreateModel(
            name="EfficacyIndicator",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=63)),
                ("description", models.CharField(default="", max_length=255)),
                ("unit", models.CharField(max_length=63, null=True)),
                ("value", models.FloatField()),
                (
                    "action_plan",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="efficacy_indicators",
                        to="plans.actionplan",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(models.F("action_plan"), models.F("name"), name="efficacy_indicator_once")
                ],
            },
        ),
    ]
