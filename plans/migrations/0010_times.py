from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("plans", "0009_column_defaults"),
    ]

    operations = [
        migrations.AddField(
            model_name="actionplan",
            name="start_time",
            field=models.DateTimeField(editable=False, help_text="when an applier began it", null=True),
        ),
        migrations.AddField(
            model_name="actionplan",
            name="end_time",
            field=models.DateTimeField(editable=False, help_text="when it got its final state", null=True),
        ),
    ]
