import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Create the results of preflights, and add the columns of approvals."""

    replaces = [("plans", "0012_preflight_results"), ("plans", "0013_approval"), ("plans", "0014_help_texts")]

    dependencies = [
        ("plans", "0011_times_of_earlier_plans"),
    ]

    operations = [
        migrations.CreateModel(
            name="PreflightResult",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "shows_details",
                    models.BooleanField(help_text="whether the messages contain the errors of derived actions"),
                ),
                (
                    "version",
                    models.CharField(
                        help_text="versions of the plan, the exclusions and the cloud from which the result was computed",
                        max_length=64,
                    ),
                ),
                ("computed_at", models.DateTimeField()),
                (
                    "prospects",
                    models.JSONField(help_text="key, outcome and message of each unfinished action, in order"),
                ),
                ("ended", models.JSONField(default=dict, help_text="number of ended actions by state")),
                (
                    "is_mirrored",
                    models.BooleanField(
                        default=False, help_text="whether the result was computed from a copy of a real cloud"
                    ),
                ),
                (
                    "read_at",
                    models.DateTimeField(help_text="time of the last complete reading of that copy", null=True),
                ),
                (
                    "action_plan",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="preflight_results",
                        to="plans.actionplan",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(models.F("computed_at"), name="preflight_result_computed_at")],
                "constraints": [
                    models.UniqueConstraint(fields=("action_plan", "shows_details"), name="preflight_result_of_plan")
                ],
            },
        ),
        migrations.AddField(
            model_name="actionplan",
            name="approved_by",
            field=models.CharField(
                editable=False, help_text="the name of the user who approved the start", max_length=255, null=True
            ),
        ),
        migrations.AddField(
            model_name="actionplan",
            name="approved_at",
            field=models.DateTimeField(editable=False, help_text="time of the approval", null=True),
        ),
    ]
