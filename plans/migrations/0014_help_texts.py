import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    # No operation executes a statement, so that none needs the locks of several tables.
    atomic = False

    dependencies = [
        ("plans", "0013_approval"),
    ]

    operations = [
        migrations.AlterField(
            model_name="actionplan",
            name="approved_at",
            field=models.DateTimeField(editable=False, help_text="time of the approval", null=True),
        ),
        migrations.AlterField(
            model_name="actionplan",
            name="context",
            field=models.TextField(
                editable=False, help_text="the encrypted calling context of the start, until the plan ends", null=True
            ),
        ),
        migrations.AlterField(
            model_name="actionplan",
            name="continues",
            field=models.ForeignKey(
                db_index=False,
                help_text="the plan whose unsuccessful actions this plan repeats",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="continuations",
                to="plans.actionplan",
            ),
        ),
        migrations.AlterField(
            model_name="actionplan",
            name="end_time",
            field=models.DateTimeField(
                editable=False, help_text="time at which the plan reached its final state", null=True
            ),
        ),
        migrations.AlterField(
            model_name="actionplan",
            name="hostname",
            field=models.CharField(help_text="host of the last applier of the plan", max_length=255, null=True),
        ),
        migrations.AlterField(
            model_name="actionplan",
            name="on_failure",
            field=models.CharField(
                choices=[
                    ("continue", "dependent actions are executed"),
                    ("stop", "dependent actions fail or are cancelled, too"),
                ],
                db_default="continue",
                default="continue",
                max_length=20,
            ),
        ),
        migrations.AlterField(
            model_name="actionplan",
            name="project_id",
            field=models.CharField(
                editable=False, help_text="project of the start; null: unknown", max_length=255, null=True
            ),
        ),
        migrations.AlterField(
            model_name="actionplan",
            name="signals",
            field=models.PositiveIntegerField(
                db_default=0,
                default=0,
                editable=False,
                help_text="number of signals to the plan and its actions; a change notifies the applier",
            ),
        ),
        migrations.AlterField(
            model_name="actionplan",
            name="start_at",
            field=models.DateTimeField(help_text="time before which no action of the plan begins", null=True),
        ),
        migrations.AlterField(
            model_name="actionplan",
            name="start_time",
            field=models.DateTimeField(
                editable=False, help_text="time at which an applier claimed the plan", null=True
            ),
        ),
        migrations.AlterField(
            model_name="actionplan",
            name="started_by",
            field=models.CharField(
                editable=False, help_text="the name of the user who started the plan", max_length=255, null=True
            ),
        ),
        migrations.AlterField(
            model_name="actionplan",
            name="suspended_by",
            field=models.CharField(
                editable=False,
                help_text="the name of the user who suspended the plan; null: not suspended",
                max_length=255,
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="actionplan",
            name="window",
            field=models.JSONField(
                help_text="the maintenance window in which the plan and its actions begin; null: any time", null=True
            ),
        ),
        migrations.AlterField(
            model_name="actionplan",
            name="zone",
            field=models.CharField(
                db_default="UTC", default="UTC", help_text="time zone of the times that users enter", max_length=64
            ),
        ),
        migrations.AlterField(
            model_name="preflightresult",
            name="ended",
            field=models.JSONField(default=dict, help_text="number of ended actions by state"),
        ),
        migrations.AlterField(
            model_name="preflightresult",
            name="is_mirrored",
            field=models.BooleanField(
                default=False, help_text="whether the result was computed from a copy of a real cloud"
            ),
        ),
        migrations.AlterField(
            model_name="preflightresult",
            name="read_at",
            field=models.DateTimeField(help_text="time of the last complete reading of that copy", null=True),
        ),
        migrations.AlterField(
            model_name="preflightresult",
            name="shows_details",
            field=models.BooleanField(help_text="whether the messages contain the errors of derived actions"),
        ),
        migrations.AlterField(
            model_name="preflightresult",
            name="version",
            field=models.CharField(
                help_text="versions of the plan, the exclusions and the cloud from which the result was computed",
                max_length=64,
            ),
        ),
    ]
