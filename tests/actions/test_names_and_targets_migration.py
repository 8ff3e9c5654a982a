"""The migration that adds names and targets to existing actions."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tests.migrated_database import empty_database, migrate_without_squashes

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def own_database(db: None, tmp_path: Path) -> Iterator[None]:
    with empty_database(tmp_path):
        yield


def test_existing_actions_get_the_names_and_targets_of_new_ones() -> None:
    apps = migrate_without_squashes(("actions", "0002_reason_of_skip"), ("plans", "0001_initial"))
    plan = apps.get_model("plans", "ActionPlan").objects.create()
    actions = apps.get_model("actions", "Action").objects
    with_target = actions.create(action_plan=plan, action_type="stop", input_parameters={"resource_id": "a server"})
    without = actions.create(action_plan=plan, action_type="nop", input_parameters={})
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())
    rows = connection.cursor()
    rows.execute("SELECT name, target FROM actions_action ORDER BY id")
    assert rows.fetchall() == [
        (f"stop_{str(with_target.uuid)[:8]}", "a server"),
        (f"nop_{str(without.uuid)[:8]}", None),
    ]
