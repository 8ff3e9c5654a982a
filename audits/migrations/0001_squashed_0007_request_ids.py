import uuid

import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
import django_fsm
from django.db import migrations, models

import watcher_site.database.records


class Migration(migrations.Migration):
    """Create the tables in their latest form."""

    replaces = [
        ("audits", "0001_initial"),
        ("audits", "0002_trigger_permission"),
        ("audits", "0003_sort_indexes"),
        ("audits", "0004_console_indexes"),
        ("audits", "0005_help_texts"),
        ("audits", "0006_periodic_purges"),
        ("audits", "0007_request_ids"),
    ]

    initial = True

    dependencies = [
        ("watcher_site", "0002_sort_indexes"),
    ]

    operations = [
        migrations.CreateModel(
            name="Goal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("name", models.CharField(max_length=63)),
                ("display_name", models.CharField(max_length=63)),
                (
                    "efficacy_specification",
                    models.JSONField(
                        default=list,
                        help_text="name, description, unit and schema of each indicator of its strategies",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(models.F("name"), models.F("id"), name="goal_name_sort"),
                    models.Index(models.F("display_name"), models.F("id"), name="goal_display_name"),
                    models.Index(models.F("created_at"), models.F("id"), name="goal_created_at"),
                    models.Index(
                        watcher_site.database.records.NullsFirst("updated_at"), models.F("id"), name="goal_updated_at"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Upper("name"),
                        condition=models.Q(("deleted_at", None)),
                        name="goal_name",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ScoringEngine",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("name", models.CharField(max_length=63)),
                ("description", models.CharField(blank=True, default="", max_length=255)),
                ("metainfo", models.TextField(blank=True, default="")),
            ],
            options={
                "indexes": [
                    models.Index(models.F("name"), models.F("id"), name="scoring_engine_name_sort"),
                    models.Index(models.F("description"), models.F("id"), name="scoring_engine_description"),
                    models.Index(models.F("created_at"), models.F("id"), name="scoring_engine_created_at"),
                    models.Index(
                        watcher_site.database.records.NullsFirst("updated_at"),
                        models.F("id"),
                        name="scoring_engine_updated_at",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Upper("name"),
                        condition=models.Q(("deleted_at", None)),
                        name="scoring_engine_name",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Strategy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("name", models.CharField(max_length=63)),
                ("display_name", models.CharField(max_length=63)),
                ("parameters_spec", models.JSONField(default=dict, help_text="JSON Schema of the parameters")),
                (
                    "goal",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="strategies", to="audits.goal"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(models.F("name"), models.F("id"), name="strategy_name_sort"),
                    models.Index(models.F("display_name"), models.F("id"), name="strategy_display_name"),
                    models.Index(models.F("created_at"), models.F("id"), name="strategy_created_at"),
                    models.Index(
                        watcher_site.database.records.NullsFirst("updated_at"),
                        models.F("id"),
                        name="strategy_updated_at",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Upper("name"),
                        condition=models.Q(("deleted_at", None)),
                        name="strategy_name",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditTemplate",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("name", models.CharField(max_length=63)),
                ("description", models.CharField(blank=True, max_length=255, null=True)),
                ("scope", models.JSONField(default=list)),
                ("default_parameters", models.JSONField(default=dict)),
                (
                    "goal",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="audit_templates", to="audits.goal"
                    ),
                ),
                (
                    "strategy",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="audit_templates",
                        to="audits.strategy",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(models.F("name"), models.F("id"), name="audit_template_name_sort"),
                    models.Index(models.F("created_at"), models.F("id"), name="audit_template_created_at"),
                    models.Index(
                        watcher_site.database.records.NullsFirst("updated_at"),
                        models.F("id"),
                        name="audit_template_updated_at",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Upper("name"),
                        condition=models.Q(("deleted_at", None)),
                        name="audit_template_name",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Audit",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("name", models.CharField(max_length=63)),
                (
                    "audit_type",
                    models.CharField(
                        choices=[("ONESHOT", "Oneshot"), ("CONTINUOUS", "Continuous"), ("EVENT", "Event")],
                        max_length=20,
                    ),
                ),
                (
                    "state",
                    django_fsm.FSMField(
                        choices=[
                            ("PENDING", "Pending"),
                            ("ONGOING", "Ongoing"),
                            ("SUCCEEDED", "Succeeded"),
                            ("FAILED", "Failed"),
                            ("CANCELLED", "Cancelled"),
                            ("SUSPENDED", "Suspended"),
                        ],
                        default="PENDING",
                        editable=False,
                        max_length=20,
                        protected=True,
                    ),
                ),
                ("status_message", models.CharField(max_length=255, null=True)),
                ("parameters", models.JSONField(default=dict)),
                (
                    "interval",
                    models.CharField(help_text="seconds, or a cron expression in UTC", max_length=36, null=True),
                ),
                ("scope", models.JSONField(default=list)),
                ("auto_trigger", models.BooleanField(default=False)),
                (
                    "force",
                    models.BooleanField(
                        default=False, help_text="whether the audit runs while an action plan is ONGOING"
                    ),
                ),
                ("next_run_time", models.DateTimeField(null=True)),
                ("start_time", models.DateTimeField(null=True)),
                ("end_time", models.DateTimeField(null=True)),
                (
                    "hostname",
                    models.CharField(
                        help_text="host of the last decision engine of the audit", max_length=255, null=True
                    ),
                ),
                (
                    "decision_engine",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="audits",
                        to="watcher_site.service",
                    ),
                ),
                (
                    "goal",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="audits", to="audits.goal"
                    ),
                ),
                (
                    "strategy",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="audits",
                        to="audits.strategy",
                    ),
                ),
                (
                    "request_id",
                    models.CharField(
                        db_default="",
                        default="",
                        editable=False,
                        help_text="id of the request that created the audit or triggered its last run; empty: none did",
                        max_length=64,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(models.F("state"), models.F("id"), name="audit_state"),
                    models.Index(models.F("name"), models.F("id"), name="audit_name_sort"),
                    models.Index(models.F("audit_type"), models.F("id"), name="audit_type"),
                    models.Index(models.F("created_at"), models.F("id"), name="audit_created_at"),
                    models.Index(
                        watcher_site.database.records.NullsFirst("updated_at"), models.F("id"), name="audit_updated_at"
                    ),
                    models.Index(
                        watcher_site.database.records.NullsFirst("next_run_time"),
                        models.F("id"),
                        name="audit_next_run_time",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Upper("name"),
                        condition=models.Q(("deleted_at", None)),
                        name="audit_name",
                    )
                ],
                "permissions": [("trigger_audit", "Can trigger audit")],
            },
            bases=(django_fsm.ConcurrentTransitionMixin, models.Model),
        ),
        migrations.CreateModel(
            name="PeriodicPurge",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("holder", models.UUIDField(null=True)),
                ("held_until", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
    ]
