import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    # No operation executes a statement, so that none needs the locks of several tables.
    atomic = False

    dependencies = [
        ("actions", "0019_present_state_index"),
        ("watcher_site", "0019_help_texts"),
    ]

    operations = [
        migrations.AlterField(
            model_name="action",
            name="control",
            field=models.CharField(
                choices=[("CANCEL", "Cancel"), ("SUSPEND", "Suspend"), ("RESUME", "Resume")],
                editable=False,
                help_text="the signal that the action has not processed yet",
                max_length=10,
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="action",
            name="data",
            field=models.JSONField(
                db_default={},
                default=dict,
                editable=False,
                help_text="data that the action type stores between attempts",
            ),
        ),
        migrations.AlterField(
            model_name="action",
            name="derived_from",
            field=models.ForeignKey(
                db_index=False,
                editable=False,
                help_text="the action that created this one while it ran, or will adopt this planned one, and waits for it",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="derived",
                to="actions.action",
            ),
        ),
        migrations.AlterField(
            model_name="action",
            name="due_time",
            field=models.DateTimeField(editable=False, help_text="earliest time of the next execution", null=True),
        ),
        migrations.AlterField(
            model_name="action",
            name="end_time",
            field=models.DateTimeField(editable=False, help_text="time at which the last execution ended", null=True),
        ),
        migrations.AlterField(
            model_name="action",
            name="exclusion",
            field=models.ForeignKey(
                db_index=False,
                editable=False,
                help_text="the rule that skipped the action",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="actions",
                to="actions.exclusion",
            ),
        ),
        migrations.AlterField(
            model_name="action",
            name="has_derived",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="whether the action has derived actions, and continues after their end",
            ),
        ),
        migrations.AlterField(
            model_name="action",
            name="has_planned",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="whether the plan was created with actions that this action will derive",
            ),
        ),
        migrations.AlterField(
            model_name="action",
            name="initial_data",
            field=models.JSONField(editable=False, help_text="data of the proposal; null: none", null=True),
        ),
        migrations.AlterField(
            model_name="action",
            name="interval",
            field=models.PositiveIntegerField(
                db_default=0, default=0, help_text="seconds between repetitions; 0: the action is not repeated"
            ),
        ),
        migrations.AlterField(
            model_name="action",
            name="is_planned",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="whether the plan was created with this action, which another action will derive",
            ),
        ),
        migrations.AlterField(
            model_name="action",
            name="lock_holder",
            field=models.UUIDField(
                editable=False, help_text="UUID of the action whose lock this action waits for", null=True
            ),
        ),
        migrations.AlterField(
            model_name="action",
            name="losses",
            field=models.PositiveSmallIntegerField(
                db_default=0,
                default=0,
                editable=False,
                help_text="number of processes that died while they executed the action",
            ),
        ),
        migrations.AlterField(
            model_name="action",
            name="outputs",
            field=models.JSONField(
                db_default={}, default=dict, editable=False, help_text="the result, or the error if the action failed"
            ),
        ),
        migrations.AlterField(
            model_name="action",
            name="owner",
            field=models.ForeignKey(
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
        migrations.AlterField(
            model_name="action",
            name="reason",
            field=models.CharField(
                db_default="", default="", help_text="the reason for the skip that a user gave", max_length=223
            ),
        ),
        migrations.AlterField(
            model_name="action",
            name="retries",
            field=models.PositiveIntegerField(
                db_default=0, default=0, editable=False, help_text="number of deferrals that count as retries"
            ),
        ),
        migrations.AlterField(
            model_name="action",
            name="skipped_by",
            field=models.CharField(help_text="the name of the user who skipped the action", max_length=255, null=True),
        ),
        migrations.AlterField(
            model_name="action",
            name="start_time",
            field=models.DateTimeField(editable=False, help_text="time at which the last execution began", null=True),
        ),
        migrations.AlterField(
            model_name="action",
            name="target",
            field=models.CharField(help_text="the changed object, usually a UUID", max_length=255, null=True),
        ),
        migrations.AlterField(
            model_name="action",
            name="timeout",
            field=models.PositiveIntegerField(help_text="seconds; null or 0: the default of the site", null=True),
        ),
        migrations.AlterField(
            model_name="action",
            name="waits_until",
            field=models.DateTimeField(
                editable=False,
                help_text="end of the wait for derived actions, for a lock or for a known time",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="exclusion",
            name="owner",
            field=models.CharField(help_text="the person or team that is responsible for the rule", max_length=255),
        ),
        migrations.AlterField(
            model_name="exclusion",
            name="targets",
            field=models.JSONField(default=dict, help_text="identifiers of objects by kind"),
        ),
        migrations.AlterField(
            model_name="exclusion",
            name="window",
            field=models.JSONField(help_text="the hours in which the rule applies; null: all", null=True),
        ),
        migrations.AlterField(
            model_name="exclusion",
            name="zone",
            field=models.CharField(default="UTC", help_text="time zone of the window", max_length=64),
        ),
        migrations.AlterField(
            model_name="instanceaction",
            name="project_id",
            field=models.CharField(
                help_text="project of the request; null: the project of the plan", max_length=255, null=True
            ),
        ),
        migrations.AlterField(
            model_name="instanceaction",
            name="request_id",
            field=models.CharField(
                help_text="id of the request, or an id derived from the UUID of the action", max_length=64
            ),
        ),
        migrations.AlterField(
            model_name="instanceaction",
            name="user_id",
            field=models.CharField(
                help_text="the user who requested the operation; null: the user of the plan", max_length=255, null=True
            ),
        ),
        migrations.AlterField(
            model_name="instanceaction",
            name="verb",
            field=models.CharField(
                help_text="Nova's name of the operation: create, live-migration, rebuild …", max_length=64
            ),
        ),
    ]
