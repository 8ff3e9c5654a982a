from django.db import migrations, models

from watcher_site.database.migration_operations import AddIndexOnline


class Migration(migrations.Migration):
    """Create the index by which actions are counted by state. The table is large, and stays open for writes."""

    atomic = False

    dependencies = [
        ("actions", "0018_column_defaults"),
    ]

    operations = [
        AddIndexOnline(
            "action",
            models.Index("state", condition=models.Q(deleted_at__isnull=True), name="action_present_state"),
        ),
    ]
