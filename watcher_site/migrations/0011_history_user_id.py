from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("watcher_site", "0010_failed_logins"),
    ]

    operations = [
        migrations.AddField(
            model_name="historyentry",
            name="user_id",
            field=models.CharField(help_text="that Keystone has for them", max_length=255, null=True),
        ),
    ]
