from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("actions", "0017_lock_holder"),
    ]

    operations = [
        migrations.AlterField(
            model_name="action",
            name="data",
            field=models.JSONField(
                db_default={}, default=dict, editable=False, help_text="what its type keeps from one run to the next"
            ),
        ),
        migrations.AlterField(
            model_name="action",
            name="has_derived",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="it made others: when they have ended, it goes on",
            ),
        ),
        migrations.AlterField(
            model_name="action",
            name="has_planned",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="others that it is to derive were written into the plan with it",
            ),
        ),
        migrations.AlterField(
            model_name="action",
            name="interval",
            field=models.PositiveIntegerField(db_default=0, default=0, help_text="in seconds; 0: it is not repeated"),
        ),
        migrations.AlterField(
            model_name="action",
            name="is_planned",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="it was written into the plan with the one that is to derive it",
            ),
        ),
        migrations.AlterField(
            model_name="action",
            name="name",
            field=models.CharField(db_default="", default="", max_length=255),
        ),
        migrations.AlterField(
            model_name="action",
            name="outputs",
            field=models.JSONField(
                db_default={}, default=dict, editable=False, help_text="what came of it, and why it failed"
            ),
        ),
        migrations.AlterField(
            model_name="action",
            name="reason",
            field=models.CharField(
                db_default="", default="", help_text="what a person wrote about its being skipped", max_length=223
            ),
        ),
        migrations.AlterField(
            model_name="action",
            name="retries",
            field=models.PositiveIntegerField(
                db_default=0, default=0, editable=False, help_text="how often it was put off"
            ),
        ),
        migrations.AlterField(
            model_name="exclusion",
            name="enabled",
            field=models.BooleanField(db_default=True, default=True),
        ),
    ]
