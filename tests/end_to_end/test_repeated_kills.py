"""An applier that is killed each time it executes the same action."""

from pathlib import Path

import pytest

from actions.engine.execution import MAX_LOSSES
from actions.models import Action
from cluster.models import Server
from tests.builders import make_node, make_plan, make_server
from tests.chaos.process_group import ProcessGroup
from tests.database import database_url
from tests.waiting import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
# A migration of the embedded cloud takes longer than the lifetime of an applier.
SECONDS = {"WATCHER_EMBEDDED_CLOUD_SECONDS": "600"}


def test_migration_fails_after_repeated_kills_and_releases_its_server(tmp_path: Path) -> None:
    source = make_node("source")
    make_node("destination")
    server = make_server("web", source)
    parameters = {"resource_id": str(server.uuid), "migration_type": "live", "source_node": "source"}
    plan = make_plan({"a": []}, state="PENDING")
    plan.actions.update(
        action_type="migrate", input_parameters={**parameters, "destination_node": "destination"}, timeout=600
    )
    action = plan.actions.get()

    def has_started(times: int) -> bool:
        begun = action.events.filter(event="execute").count() == times
        return begun and Server.objects.filter(pk=server.pk, task_state="migrating").exists()

    environment = {"DATABASE_URL": database_url(), **SECONDS}
    with ProcessGroup([["manage.py", "run_applier"]], tmp_path / "log", environment) as processes:
        for times in range(1, MAX_LOSSES + 1):
            wait_for(lambda times=times: has_started(times))
            processes.restart(0)
        wait_for(lambda: Action.objects.get(pk=action.pk).state in Action.FINAL)
    ended = Action.objects.get(pk=action.pk)
    left = Server.objects.get(pk=server.pk)
    assert (ended.state, ended.status_message) == (
        "FAILED",
        "Action failed in recover: 6 processes were lost while they executed it. It was not done, and is not tried"
        " again.",
    )
    assert (left.task_state, left.destination, left.operation_owner, left.node) == (None, None, "", source)
