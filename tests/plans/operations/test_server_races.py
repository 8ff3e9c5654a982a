"""Concurrent requests for operations on one server."""

import pytest

from actions.models import Action
from plans.operations import servers as server_operations
from plans.operations.servers import delete_server, rebuild_server, reset_server
from tests.builders import make_node, make_server
from tests.interleaving import Rival, interrupt_before
from watcher_site.refusals import Conflict
from watcher_site.request_context import CallingContext

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


def kinds() -> list[str]:
    return sorted(Action.objects.values_list("action_type", flat=True))


def test_one_of_two_concurrent_rebuilds_of_a_server_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    server = make_server(node=make_node())
    second = Rival(lambda: rebuild_server(server, None, CallingContext()))
    interrupt_before(monkeypatch, server_operations, "start_server_operation", second)
    rebuild_server(server, None, CallingContext())
    with pytest.raises(Conflict, match=str(Action.objects.get().uuid)):
        second.result()
    assert kinds() == ["rebuild"]


def test_concurrent_deletions_of_a_server_create_one_action(monkeypatch: pytest.MonkeyPatch) -> None:
    server = make_server(node=make_node())
    second = Rival(lambda: delete_server(server, CallingContext()))
    interrupt_before(monkeypatch, server_operations, "start_action", second)
    delete_server(server, CallingContext())
    second.result()
    assert kinds() == ["delete_server"]


def test_reset_of_a_server_during_a_rebuild_request_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    server = make_server(node=make_node())
    second = Rival(lambda: reset_server(server, "error", CallingContext()))
    interrupt_before(monkeypatch, server_operations, "start_server_operation", second)
    rebuild_server(server, None, CallingContext())
    second.result()
    assert kinds() == ["rebuild", "reset_state"]
