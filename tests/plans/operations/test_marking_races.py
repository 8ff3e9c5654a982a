"""Marks and operations on the same object exclude each other, with real threads on PostgreSQL."""

from functools import partial
from typing import Any

import pytest

from actions.models import Action
from actions.types import locking
from actions.types.locking import take_locks
from cluster.drivers.embedded import EmbeddedCloud
from cluster.drivers.rules import require_rebuild
from cluster.models import Node, Server, Stack, StackResource
from cluster.models.stacks import StackPart
from plans.operations.marks import mark
from tests.builders import make_cluster, make_node, make_resource, make_server
from tests.interleaving import Rival, interrupt_after, interrupt_before
from tests.plans.operations.test_marking import again, make_action, make_group
from tests.races import Race, rounds
from watcher_site.refusals import Conflict

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
ROUNDS = rounds(30)


def wanted_locks(resource: StackResource, kind: str) -> list[tuple[Any, bool]]:
    root = Stack.objects.get(pk=resource.stack.root_key)
    return {"update_stack": [(root, True)], "replace_resource": [(root, False), (resource, True)]}[kind]


KINDS = pytest.mark.parametrize("kind", ["update_stack", "replace_resource"])


@KINDS
def test_mark_during_the_acquisition_of_a_lock_is_refused(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    _, member = make_group(Stack.objects.create(name="shop"))
    second = Rival(lambda: mark(member, True))
    interrupt_after(monkeypatch, locking, "take_lock", second)
    assert locking.take_locks(make_action(kind), wanted_locks(member, kind)) is None
    with pytest.raises(Conflict, match="already has an action"):
        second.result()
    assert again(member).status == "INIT_COMPLETE"


@KINDS
def test_lock_acquired_during_a_mark_waits_and_reads_the_mark(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    _, member = make_group(Stack.objects.create(name="shop"))
    action = make_action(kind)

    def operate() -> str:
        assert take_locks(action, wanted_locks(member, kind)) is None
        return str(again(member).status)

    second = Rival(operate)
    interrupt_before(monkeypatch, StackPart, "save_state", second)
    mark(member, True)
    assert second.result() == "CHECK_FAILED"


def test_mark_is_not_written_while_an_operation_holds_the_lock() -> None:
    stack = Stack.objects.create(name="shop")
    resource = make_resource(stack, "web")
    seen: list[str] = []

    def operate(action: str) -> bool:
        seen.clear()
        assert take_locks(action, wanted_locks(resource, "replace_resource")) is None
        seen.extend(again(resource).status_reason for _ in range(3))
        return True

    with Race() as race:
        for number in range(ROUNDS):
            action, reason = make_action("replace_resource"), f"round {number}"
            marked, _ = race.run(partial(mark, resource, True, reason), partial(operate, action))
            assert {(reason == one) for one in seen} == {marked}
            assert (again(resource).status_reason == reason) is marked
            Action.objects.filter(uuid=action).update(state="SUCCEEDED")


def test_mark_of_a_node_while_an_action_locks_its_cluster_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = make_cluster(size=1)
    node: Node = cluster.members()[0]
    second = Rival(lambda: mark(node, True))
    interrupt_after(monkeypatch, locking, "take_lock", second)
    assert locking.take_locks(make_action("CLUSTER_RECOVER"), [(cluster, True)]) is None
    with pytest.raises(Conflict, match="cannot be marked"):
        second.result()
    assert again(node).status == "ACTIVE"


def test_mark_of_a_server_while_its_rebuild_begins_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    server = make_server(node=make_node())
    second = Rival(lambda: mark(server, True))
    interrupt_before(monkeypatch, Server, "save_changes", second)
    EmbeddedCloud().begin_repair(str(server.uuid), "rebuilding", require_rebuild)
    with pytest.raises(Conflict, match="while it is in task_state rebuilding"):
        second.result()
    assert again(server).unhealthy_reason is None
