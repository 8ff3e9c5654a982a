"""The migration that adds names and targets to existing actions."""

from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def newest_tables_afterwards() -> Iterator[None]:
    yield
    call_command("migrate", verbosity=0)


def test_existing_actions_get_the_names_and_targets_of_new_ones(newest_tables_afterwards: None) -> None:
    executor = MigrationExecutor(connection)
    before = [("actions", "0002_reason_of_skip"), ("plans", "0001_initial")]
    executor.migrate(before)
    apps = executor.loader.project_state(before).apps
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
