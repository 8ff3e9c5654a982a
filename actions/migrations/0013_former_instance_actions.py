"""What was done to servers before it was written down by itself: as far as the actions tell of it."""

from typing import Any
from uuid import UUID

from django.db import migrations

BATCH = 2000
VERBS = {
    "build": "create",
    "rebuild": "rebuild",
    "reset_state": "resetState",
    "delete_server": "delete",
    "resize": "resize",
    "stop": "stop",
    "migrate": "migrate",
}


def verb_of(action: Any) -> str:
    is_live = action.action_type == "migrate" and action.input_parameters.get("migration_type") == "live"
    return "live-migration" if is_live else VERBS[action.action_type]


def server_of(action: Any) -> UUID | None:
    try:
        return UUID(str(action.input_parameters.get("resource_id")))
    except ValueError:
        return None


def fill(apps: Any, schema_editor: Any) -> None:
    actions, records = apps.get_model("actions", "Action"), apps.get_model("actions", "InstanceAction")
    begun = actions.objects.filter(action_type__in=VERBS, attempt__gt=0).order_by("pk")
    made = []
    for action in begun.only("uuid", "action_type", "input_parameters", "start_time", "created_at").iterator(BATCH):
        if server := server_of(action):
            made.append(
                records(
                    server_uuid=server,
                    action=action,
                    verb=verb_of(action),
                    request_id=f"req-{action.uuid}",
                    start_time=action.start_time or action.created_at,
                )
            )
        if len(made) == BATCH:
            records.objects.bulk_create(made, ignore_conflicts=True)
            made.clear()
    records.objects.bulk_create(made, ignore_conflicts=True)


class Migration(migrations.Migration):
    dependencies = [("actions", "0012_instance_actions")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop, elidable=True)]
