"""Recovery of an action whose process is lost repeatedly: the count of losses, and the failure of the action."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from actions.engine import execution
from actions.engine.execution import MAX_LOSSES, SHARED_LOSSES, runs_alone
from actions.models import Action
from actions.types.base import ActionFailed, Recovery
from cluster.drivers.ownership import acting_for
from cluster.models import Server
from tests.actions.engine.test_interruptions import FakeLease, answer, behave, failing, make_action, phases, reload
from tests.builders import make_node, make_plan, make_server
from watcher_site.models import Service

pytestmark = pytest.mark.django_db
__all__ = ["behave"]


def lost_service() -> Service:
    return Service.objects.create(name=Service.APPLIER, host="lost", last_seen_up=timezone.now() - timedelta(hours=1))


def interrupted(owner: Service | None, losses: int = 0, state: str = "ONGOING") -> Action:
    action = make_action(state)
    Action.objects.filter(pk=action.pk).update(owner=owner, losses=losses)
    return reload(action)


class OwnLease(FakeLease):
    def __init__(self, service: Service, **options: Any) -> None:
        super().__init__(**options)
        self.owner = service.pk


# Count of losses.


def test_loss_of_the_executing_process_is_counted(behave: Callable[..., None]) -> None:
    behave(execute=failing(SystemExit()))
    action = interrupted(lost_service(), losses=1)
    execution.recover(action, FakeLease())
    assert reload(action).losses == 2


def test_lost_connection_of_a_running_process_is_not_counted() -> None:
    service = Service.register(Service.APPLIER, "here")
    Service.objects.filter(pk=service.pk).update(last_seen_up=timezone.now() - timedelta(hours=1))
    action = interrupted(service)
    execution.recover(action, OwnLease(service))
    assert reload(action).losses == 0


def test_action_released_by_a_running_process_is_not_counted() -> None:
    action = interrupted(Service.register(Service.APPLIER, "elsewhere"))
    execution.recover(action, FakeLease())
    assert reload(action).losses == 0


def test_action_of_a_cleanly_stopped_process_is_not_counted() -> None:
    service = lost_service()
    service.retire()
    action = interrupted(service)
    execution.recover(action, FakeLease())
    assert reload(action).losses == 0


def test_losses_of_an_earlier_execution_do_not_count(behave: Callable[..., None]) -> None:
    action = make_action()
    Action.objects.filter(pk=action.pk).update(losses=MAX_LOSSES - 1)
    execution.execute(reload(action), FakeLease())
    assert reload(action).losses == 0


@pytest.mark.parametrize(("losses", "alone"), [(SHARED_LOSSES - 2, False), (SHARED_LOSSES - 1, True)])
def test_action_with_several_losses_is_recovered_alone(losses: int, alone: bool) -> None:
    assert runs_alone(execution.recover, interrupted(lost_service(), losses)) is alone


def test_action_with_several_losses_is_executed_among_others() -> None:
    assert not runs_alone(execution.execute, interrupted(None, MAX_LOSSES, "PENDING"))


# Failure of the action.


@pytest.mark.parametrize("state", ["ONGOING", "CANCELLING"])
def test_action_found_done_succeeds_after_the_last_loss(behave: Callable[..., None], state: str) -> None:
    behave(recover=answer(Recovery.DONE))
    action = interrupted(lost_service(), MAX_LOSSES - 1, state)
    assert execution.recover(action, FakeLease(cancelling=state == "CANCELLING"))
    assert (reload(action).state, reload(action).status_message) == ("SUCCEEDED", None)


@pytest.mark.parametrize(("state", "phase"), [("ONGOING", "recover"), ("CANCELLING", "abort")])
def test_repeatable_action_fails_with_the_reason_after_the_last_loss(
    behave: Callable[..., None], state: str, phase: str
) -> None:
    behave(execute=failing(AssertionError("executed")), recover=answer(Recovery.AGAIN))
    action = interrupted(lost_service(), MAX_LOSSES - 1, state)
    assert execution.recover(action, FakeLease(cancelling=state == "CANCELLING"))
    assert (reload(action).state, reload(action).status_message) == (
        "FAILED",
        f"Action failed in {phase}: 6 processes were lost while they executed it. It was not done, and is not tried"
        " again.",
    )
    assert phases(action) == [(phase, "Error")]


def test_message_of_a_failed_recover_is_kept_after_the_last_loss(behave: Callable[..., None]) -> None:
    behave(recover=failing(ActionFailed("it is elsewhere")))
    action = interrupted(lost_service(), MAX_LOSSES - 1)
    assert execution.recover(action, FakeLease())
    assert reload(action).status_message == "Action failed in recover: it is elsewhere"


def test_action_is_executed_again_below_the_maximum_of_losses(behave: Callable[..., None]) -> None:
    action = interrupted(lost_service(), MAX_LOSSES - 2)
    assert execution.recover(action, FakeLease())
    assert reload(action).state == "SUCCEEDED"


def test_recover_is_not_called_again_after_it_lost_its_process(
    behave: Callable[..., None],
) -> None:
    behave(recover=failing(AssertionError("called")))
    action = interrupted(lost_service(), MAX_LOSSES)
    assert execution.recover(action, FakeLease())
    assert reload(action).status_message == (
        "Action failed in recover: 7 processes were lost while they executed it. Its outcome is not known."
    )


# Operations in the cloud.


def interrupted_migration(losses: int) -> tuple[Action, Server]:
    source, destination = make_node("source"), make_node("destination")
    server = make_server("web", source)
    parameters = {
        "resource_id": str(server.uuid),
        "migration_type": "live",
        "source_node": "source",
        "destination_node": "destination",
    }
    plan = make_plan({"a": []}, state="ONGOING")
    plan.actions.update(
        state="ONGOING",
        attempt=3,
        action_type="migrate",
        input_parameters=parameters,
        losses=losses,
        owner=lost_service(),
    )
    action = plan.actions.get()
    owner = f"{action.uuid}/3"
    Server.objects.filter(pk=server.pk).update(task_state="migrating", destination=destination, operation_owner=owner)
    return action, server


def operation_of(server: Server) -> tuple[str | None, int | None, str]:
    row = Server.objects.get(pk=server.pk)
    return row.task_state, row.destination_id, row.operation_owner


def test_migration_that_failed_for_losses_frees_the_server_and_its_capacity() -> None:
    action, server = interrupted_migration(MAX_LOSSES - 1)
    assert execution.recover(action, FakeLease())
    assert reload(action).state == "FAILED"
    assert operation_of(server) == (None, None, "")


def test_message_names_the_server_to_reset_if_the_last_recovery_lost_its_process() -> None:
    action, server = interrupted_migration(MAX_LOSSES)
    assert execution.recover(action, FakeLease())
    assert reload(action).status_message.endswith(
        f"Its outcome is not known. Check instance {server.uuid} in the cloud, and reset its state if it is still"
        " busy."
    )


def test_operation_of_another_action_on_the_server_is_kept() -> None:
    action, server = interrupted_migration(MAX_LOSSES - 1)
    Server.objects.filter(pk=server.pk).update(operation_owner="another/1")
    assert execution.recover(action, FakeLease())
    assert operation_of(server)[0] == "migrating"


def test_build_that_failed_for_losses_leaves_the_server_in_error() -> None:
    server = make_server("web", make_node(), state="building", launched_at=None)
    plan = make_plan({"a": []}, state="ONGOING")
    parameters = {"resource_id": str(server.uuid)}
    plan.actions.update(
        state="ONGOING", attempt=1, action_type="build", input_parameters=parameters, losses=5, owner=lost_service()
    )
    action = plan.actions.get()
    Server.objects.filter(pk=server.pk).update(task_state="spawning", operation_owner=f"{action.uuid}/1")
    assert execution.recover(action, FakeLease())
    assert (reload(action).state, Server.objects.get(pk=server.pk).state) == ("FAILED", "error")
    assert operation_of(server) == (None, None, "")


# Reverts.


def test_revert_fails_after_too_many_losses_and_leaves_no_operation() -> None:
    action, server = interrupted_migration(MAX_LOSSES - 1)
    Action.objects.filter(pk=action.pk).update(state="SUCCEEDED")
    action.events.create(event="revert")
    with acting_for(str(action.uuid), 3):
        assert execution.revert(reload(action), FakeLease())
    last = action.events.last()
    assert (last.result, last.details) == (
        "Error",
        "6 processes were lost while they executed it. It is not tried again.",
    )
    assert operation_of(server) == (None, None, "")


def test_losses_before_an_action_succeeded_do_not_count_for_its_revert(behave: Callable[..., None]) -> None:
    behave(revert=answer(True))
    action = interrupted(None, MAX_LOSSES, "SUCCEEDED")
    assert execution.revert(action, FakeLease())
    assert phases(action) == [("revert", "Success")]
