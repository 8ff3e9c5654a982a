from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("watcher_site", "0019_help_texts"),
    ]

    operations = [
        migrations.AddField(
            model_name="notification",
            name="request_id",
            field=models.CharField(
                db_default="",
                default="",
                help_text="id of the request that caused the change, also by an audit or a plan; empty: none did",
                max_length=64,
            ),
        ),
    ]
