import uuid

import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
import django_fsm
from django.db import migrations, models

import watcher_site.database.records


class Migration(migrations.Migration):
    """Create the tables in their latest form. The changes of rows are omitted, as a new table has none."""

    replaces = [
        ("actions", "0001_initial"),
        ("actions", "0002_reason_of_skip"),
        ("actions", "0003_properties"),
        ("actions", "0004_retries"),
        ("actions", "0005_timeout"),
        ("actions", "0006_derived_actions"),
        ("actions", "0007_signals"),
        ("actions", "0008_outputs"),
        ("actions", "0009_owner_may_be_a_worker"),
        ("actions", "0010_planned_actions"),
        ("actions", "0011_exclusions"),
        ("actions", "0012_instance_actions"),
        ("actions", "0013_former_instance_actions"),
        ("actions", "0014_enabled_exclusions"),
        ("actions", "0015_waits_until"),
        ("actions", "0016_losses"),
        ("actions", "0017_lock_holder"),
        ("actions", "0018_column_defaults"),
        ("actions", "0019_present_state_index"),
        ("actions", "0020_help_texts"),
        ("actions", "0021_state_index"),
    ]

    initial = True

    dependencies = [
        ("plans", "0007_continuations_index"),
        ("watcher_site", "0019_help_texts"),
    ]

    operations = [
        migrations.CreateModel(
            name="ExclusionRevision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("mark", models.UUIDField()),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="exclusion_revision_once")],
            },
        ),
        migrations.CreateModel(
            name="Exclusion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("name", models.CharField(max_length=100)),
                ("reason", models.CharField(blank=True, default="", max_length=255)),
                (
                    "owner",
                    models.CharField(help_text="the person or team that is responsible for the rule", max_length=255),
                ),
                ("action_types", models.JSONField(default=list)),
                ("targets", models.JSONField(default=dict, help_text="identifiers of objects by kind")),
                ("window", models.JSONField(help_text="the hours in which the rule applies; null: all", null=True)),
                ("zone", models.CharField(default="UTC", help_text="time zone of the window", max_length=64)),
                ("expires_at", models.DateTimeField(null=True)),
                ("enabled", models.BooleanField(db_default=True, default=True)),
            ],
            options={
                "ordering": ["name"],
                "indexes": [
                    models.Index(models.F("name"), models.F("id"), name="exclusion_name_sort"),
                    models.Index(models.F("owner"), models.F("id"), name="exclusion_owner"),
                    models.Index(
                        django.db.models.functions.text.Upper("owner"), models.F("id"), name="exclusion_any_case_owner"
                    ),
                    models.Index(
                        watcher_site.database.records.NullsFirst("expires_at"),
                        models.F("id"),
                        name="exclusion_expires_at",
                    ),
                    models.Index(models.F("created_at"), models.F("id"), name="exclusion_created_at"),
                    models.Index(
                        watcher_site.database.records.NullsFirst("updated_at"),
                        models.F("id"),
                        name="exclusion_updated_at",
                    ),
                    models.Index(models.F("enabled"), models.F("id"), name="exclusion_enabled"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Upper("name"),
                        condition=models.Q(("deleted_at", None)),
                        name="exclusion_name",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Action",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("action_type", models.CharField(max_length=255)),
                ("input_parameters", models.JSONField(default=dict)),
                (
                    "state",
                    django_fsm.FSMField(
                        choices=[
                            ("PENDING", "Pending"),
                            ("ONGOING", "Ongoing"),
                            ("SUSPENDED", "Suspended"),
                            ("CANCELLING", "Cancelling"),
                            ("SUCCEEDED", "Succeeded"),
                            ("FAILED", "Failed"),
                            ("SKIPPED", "Skipped"),
                            ("CANCELLED", "Cancelled"),
                        ],
                        default="PENDING",
                        editable=False,
                        max_length=20,
                        protected=True,
                    ),
                ),
                ("status_message", models.CharField(max_length=255, null=True)),
                (
                    "skipped_by",
                    models.CharField(
                        help_text="the name of the user who skipped the action", max_length=255, null=True
                    ),
                ),
                ("attempt", models.PositiveIntegerField(default=0, editable=False)),
                (
                    "action_plan",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="actions", to="plans.actionplan"
                    ),
                ),
                (
                    "reason",
                    models.CharField(
                        db_default="", default="", help_text="the reason for the skip that a user gave", max_length=223
                    ),
                ),
                (
                    "end_time",
                    models.DateTimeField(
                        editable=False, help_text="time at which the last execution ended", null=True
                    ),
                ),
                (
                    "interval",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="seconds between repetitions; 0: the action is not repeated"
                    ),
                ),
                ("name", models.CharField(db_default="", default="", max_length=255)),
                (
                    "owner",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        editable=False,
                        help_text="the applier or worker that executes the action",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="actions",
                        to="watcher_site.service",
                    ),
                ),
                (
                    "start_time",
                    models.DateTimeField(
                        editable=False, help_text="time at which the last execution began", null=True
                    ),
                ),
                (
                    "target",
                    models.CharField(help_text="the changed object, usually a UUID", max_length=255, null=True),
                ),
                (
                    "due_time",
                    models.DateTimeField(editable=False, help_text="earliest time of the next execution", null=True),
                ),
                (
                    "retries",
                    models.PositiveIntegerField(
                        db_default=0, default=0, editable=False, help_text="number of deferrals that count as retries"
                    ),
                ),
                (
                    "timeout",
                    models.PositiveIntegerField(help_text="seconds; null or 0: the default of the site", null=True),
                ),
                (
                    "derived_from",
                    models.ForeignKey(
                        db_index=False,
                        editable=False,
                        help_text="the action that created this one while it ran, or will adopt this planned one, and waits for it",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="derived",
                        to="actions.action",
                    ),
                ),
                (
                    "has_derived",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        editable=False,
                        help_text="whether the action has derived actions, and continues after their end",
                    ),
                ),
                (
                    "control",
                    models.CharField(
                        choices=[("CANCEL", "Cancel"), ("SUSPEND", "Suspend"), ("RESUME", "Resume")],
                        editable=False,
                        help_text="the signal that the action has not processed yet",
                        max_length=10,
                        null=True,
                    ),
                ),
                (
                    "data",
                    models.JSONField(
                        db_default={},
                        default=dict,
                        editable=False,
                        help_text="data that the action type stores between attempts",
                    ),
                ),
                (
                    "outputs",
                    models.JSONField(
                        db_default={},
                        default=dict,
                        editable=False,
                        help_text="the result, or the error if the action failed",
                    ),
                ),
                (
                    "has_planned",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        editable=False,
                        help_text="whether the plan was created with actions that this action will derive",
                    ),
                ),
                (
                    "initial_data",
                    models.JSONField(editable=False, help_text="data of the proposal; null: none", null=True),
                ),
                (
                    "is_planned",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        editable=False,
                        help_text="whether the plan was created with this action, which another action will derive",
                    ),
                ),
                (
                    "exclusion",
                    models.ForeignKey(
                        db_index=False,
                        editable=False,
                        help_text="the rule that skipped the action",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="actions",
                        to="actions.exclusion",
                    ),
                ),
                (
                    "waits_until",
                    models.DateTimeField(
                        editable=False,
                        help_text="end of the wait for derived actions, for a lock or for a known time",
                        null=True,
                    ),
                ),
                (
                    "losses",
                    models.PositiveSmallIntegerField(
                        db_default=0,
                        default=0,
                        editable=False,
                        help_text="number of processes that died while they executed the action",
                    ),
                ),
                (
                    "lock_holder",
                    models.UUIDField(
                        editable=False, help_text="UUID of the action whose lock this action waits for", null=True
                    ),
                ),
            ],
            options={
                "permissions": [("skip_action", "Can skip action"), ("signal_action", "Can signal action")],
                "indexes": [
                    models.Index(models.F("action_plan"), models.F("state"), models.F("id"), name="action_plan_state"),
                    models.Index(models.F("action_type"), models.F("id"), name="action_type"),
                    models.Index(models.F("created_at"), models.F("id"), name="action_created_at"),
                    models.Index(
                        watcher_site.database.records.NullsFirst("updated_at"),
                        models.F("id"),
                        name="action_updated_at",
                    ),
                    models.Index(models.F("name"), models.F("id"), name="action_name"),
                    models.Index(
                        watcher_site.database.records.NullsFirst("target"), models.F("id"), name="action_target"
                    ),
                    models.Index(models.F("owner"), condition=models.Q(("owner__isnull", False)), name="action_owner"),
                    models.Index(
                        models.F("derived_from"),
                        models.F("id"),
                        condition=models.Q(("derived_from__isnull", False)),
                        name="action_derived_from",
                    ),
                    models.Index(
                        models.F("exclusion"),
                        models.F("id"),
                        condition=models.Q(("exclusion__isnull", False)),
                        name="action_exclusion",
                    ),
                    models.Index(
                        models.F("waits_until"),
                        condition=models.Q(("state", "PENDING"), ("waits_until__isnull", False)),
                        name="action_waits_until",
                    ),
                    models.Index(
                        models.F("lock_holder"),
                        condition=models.Q(("lock_holder__isnull", False)),
                        name="action_lock_holder",
                    ),
                    models.Index(models.F("state"), models.F("id"), models.F("deleted_at"), name="action_state_key"),
                ],
            },
            bases=(django_fsm.ConcurrentTransitionMixin, models.Model),
        ),
        migrations.CreateModel(
            name="ActionEvent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("event", models.CharField(max_length=64)),
                ("attempt", models.PositiveIntegerField(default=0)),
                ("start_time", models.DateTimeField(default=django.utils.timezone.now)),
                ("finish_time", models.DateTimeField(null=True)),
                (
                    "result",
                    models.CharField(
                        choices=[
                            ("Success", "Success"),
                            ("Skipped", "Skipped"),
                            ("Cancelled", "Cancelled"),
                            ("Error", "Error"),
                            ("Retry", "Retry"),
                            ("Waiting", "Waiting"),
                        ],
                        max_length=20,
                        null=True,
                    ),
                ),
                ("details", models.CharField(max_length=255, null=True)),
                ("host", models.CharField(default="", max_length=255)),
                (
                    "action",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="events", to="actions.action"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "permissions": [("view_event_details", "Can view event details")],
            },
        ),
        migrations.CreateModel(
            name="ActionParent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "child",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="parent_links", to="actions.action"
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="child_links", to="actions.action"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(models.F("child"), models.F("parent"), name="action_parent_once"),
                    models.CheckConstraint(
                        condition=models.Q(("child", models.F("parent")), _negated=True), name="action_parent_other"
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="action",
            name="parents",
            field=models.ManyToManyField(
                related_name="children",
                through="actions.ActionParent",
                through_fields=("child", "parent"),
                to="actions.action",
            ),
        ),
        migrations.CreateModel(
            name="InstanceAction",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("server_uuid", models.UUIDField()),
                (
                    "verb",
                    models.CharField(
                        help_text="Nova's name of the operation: create, live-migration, rebuild …", max_length=64
                    ),
                ),
                (
                    "request_id",
                    models.CharField(
                        help_text="id of the request, or an id derived from the UUID of the action", max_length=64
                    ),
                ),
                (
                    "user_id",
                    models.CharField(
                        help_text="the user who requested the operation; null: the user of the plan",
                        max_length=255,
                        null=True,
                    ),
                ),
                (
                    "project_id",
                    models.CharField(
                        help_text="project of the request; null: the project of the plan", max_length=255, null=True
                    ),
                ),
                ("start_time", models.DateTimeField(default=django.utils.timezone.now)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("message", models.CharField(editable=False, max_length=64, null=True)),
                ("kept_events", models.JSONField(editable=False, null=True)),
                (
                    "action",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="instance_actions",
                        to="actions.action",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        models.F("server_uuid"),
                        models.F("start_time"),
                        models.F("id"),
                        name="instance_action_start_time",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("server_uuid"), models.F("request_id"), name="instance_action_request"
                    ),
                    models.UniqueConstraint(models.F("action"), models.F("server_uuid"), name="instance_action_once"),
                ],
            },
        ),
    ]
