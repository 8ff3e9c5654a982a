from django.db import migrations, models

from watcher_site.database.migration_operations import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("watcher_site", "0011_history_user_id"),
    ]

    operations = [
        AddIndexOnline(
            model_name="historyentry",
            index=models.Index(
                models.F("user_id"),
                models.F("id"),
                condition=models.Q(("user_id__isnull", False)),
                name="history_user_id",
            ),
        ),
    ]
