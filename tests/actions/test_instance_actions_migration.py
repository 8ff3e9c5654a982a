"""The migration that creates instance actions from the actions of earlier versions."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from actions.models import InstanceAction
from tests.migrated_database import empty_database, migrate_without_squashes

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
BEGUN = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def former(db: None, tmp_path: Path) -> Iterator[Any]:
    """Yield the models before the migration, in a database of their own."""
    with empty_database(tmp_path):
        yield migrate_without_squashes(("actions", "0012_instance_actions"))


def test_migration_records_started_actions_that_name_a_server(former: Any) -> None:
    server = uuid4()
    plan = former.get_model("plans", "ActionPlan").objects.create()

    def add(kind: str, resource: str = str(server), **columns: Any) -> Any:
        named = {"resource_id": resource, **columns.pop("inputs", {})}
        columns = {"attempt": 1, "start_time": BEGUN, **columns}
        actions = former.get_model("actions", "Action").objects
        return actions.create(action_plan=plan, action_type=kind, input_parameters=named, **columns)

    moved = add("migrate", inputs={"migration_type": "live"})
    stopped = add("stop", start_time=None)
    add("stop", attempt=0)
    add("stop", resource="no UUID")
    add("nop")
    MigrationExecutor(connection).migrate([("actions", "0013_former_instance_actions")])
    assert list(InstanceAction.objects.order_by("pk").values_list("action", "verb", "request_id", "start_time")) == [
        (moved.pk, "live-migration", f"req-{moved.uuid}", BEGUN),
        (stopped.pk, "stop", f"req-{stopped.uuid}", stopped.created_at),
    ]
    assert set(InstanceAction.objects.values_list("server_uuid", flat=True)) == {server}
