from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("actions", "0014_enabled_exclusions"),
    ]

    operations = [
        migrations.AddField(
            model_name="action",
            name="waits_until",
            field=models.DateTimeField(
                editable=False,
                help_text="how long it may wait, for what it derived or for what is in its way",
                null=True,
            ),
        ),
        migrations.AddIndex(
            model_name="action",
            index=models.Index(
                models.F("waits_until"),
                condition=models.Q(("state", "PENDING"), ("waits_until__isnull", False)),
                name="action_waits_until",
            ),
        ),
    ]
