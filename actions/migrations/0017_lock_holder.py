from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("actions", "0016_losses"),
    ]

    operations = [
        migrations.AddField(
            model_name="action",
            name="lock_holder",
            field=models.UUIDField(editable=False, help_text="the action whose lock it waits for", null=True),
        ),
        migrations.AddIndex(
            model_name="action",
            index=models.Index(
                models.F("lock_holder"), condition=models.Q(("lock_holder__isnull", False)), name="action_lock_holder"
            ),
        ),
    ]
