from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("watcher_site", "0017_subscription_kinds"),
    ]

    operations = [
        migrations.AddField(
            model_name="notification",
            name="person",
            field=models.CharField(
                help_text="user who caused the change; null: the site itself", max_length=255, null=True
            ),
        ),
    ]
