"""Two people request operations on one server at the same moment: the second request finds the first."""

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


def test_of_two_who_rebuild_a_server_at_once_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    server = make_server(node=make_node())
    second = Rival(lambda: rebuild_server(server, None, CallingContext()))
    interrupt_before(monkeypatch, server_operations, "start_server_operation", second)
    rebuild_server(server, None, CallingContext())
    with pytest.raises(Conflict, match=str(Action.objects.get().uuid)):
        second.result()
    assert kinds() == ["rebuild"]


def test_two_who_delete_a_server_at_once_have_it_deleted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    server = make_server(node=make_node())
    second = Rival(lambda: delete_server(server, CallingContext()))
    interrupt_before(monkeypatch, server_operations, "start_action", second)
    delete_server(server, CallingContext())
    second.result()
    assert kinds() == ["delete_server"]


def test_a_reset_of_a_server_during_the_request_to_rebuild_it_takes_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    server = make_server(node=make_node())
    second = Rival(lambda: reset_server(server, "error", CallingContext()))
    interrupt_before(monkeypatch, server_operations, "start_server_operation", second)
    rebuild_server(server, None, CallingContext())
    second.result()
    assert kinds() == ["rebuild", "reset_state"]
