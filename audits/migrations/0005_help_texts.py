from django.db import migrations, models


class Migration(migrations.Migration):
    # No operation executes a statement, so that none needs the locks of several tables.
    atomic = False

    dependencies = [
        ("audits", "0004_console_indexes"),
    ]

    operations = [
        migrations.AlterField(
            model_name="audit",
            name="force",
            field=models.BooleanField(
                default=False, help_text="whether the audit runs while an action plan is ONGOING"
            ),
        ),
        migrations.AlterField(
            model_name="audit",
            name="hostname",
            field=models.CharField(
                help_text="host of the last decision engine of the audit", max_length=255, null=True
            ),
        ),
        migrations.AlterField(
            model_name="goal",
            name="efficacy_specification",
            field=models.JSONField(
                default=list, help_text="name, description, unit and schema of each indicator of its strategies"
            ),
        ),
        migrations.AlterField(
            model_name="strategy",
            name="parameters_spec",
            field=models.JSONField(default=dict, help_text="JSON Schema of the parameters"),
        ),
    ]
