from django.db import migrations, models

from watcher_site.database.migration_operations import AddIndexOnline, RemoveIndexOnline


class Migration(migrations.Migration):
    """Replace two indexes by one. PostgreSQL used the partial one in place of the primary key in a new database."""

    atomic = False

    dependencies = [
        ("actions", "0020_help_texts"),
    ]

    operations = [
        AddIndexOnline("action", models.Index("state", "id", "deleted_at", name="action_state_key")),
        RemoveIndexOnline("action", "action_state"),
        RemoveIndexOnline("action", "action_present_state"),
    ]
