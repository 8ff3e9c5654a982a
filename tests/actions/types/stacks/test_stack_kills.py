"""An applier killed between database writes of stack operations: the next applier completes them once."""

from collections.abc import Callable
from itertools import count

import pytest

from cluster.models import Server, Stack
from plans.models import ActionPlan
from tests.actions.types.stacks.builders import (
    create,
    group,
    inside,
    mark,
    part,
    proposed,
    server,
    statuses,
    template,
    within,
)
from tests.builders import make_flavor, make_node
from tests.plans.kills import kill_at_every_change

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
# With fewer kills, the appliers were not killed during the operation.
AT_LEAST = 4
STEP = 3


@pytest.fixture(autouse=True)
def capacity() -> None:
    make_node(vcpus=1000, memory=10**6, disk=10**5)
    make_flavor("small")


@pytest.fixture
def name() -> Callable[[], str]:
    numbers = count()
    return lambda: f"shop-{next(numbers)}"


def kills(monkeypatch: pytest.MonkeyPatch, make: Callable[[], ActionPlan]) -> int:
    """Kill the appliers of plans, which must all succeed in the end, and return the number of plans."""
    plans = list(kill_at_every_change(monkeypatch, make, STEP))
    assert {plan.state for plan in plans} == {"SUCCEEDED"}
    assert len(plans) > AT_LEAST
    return len(plans)


def count_servers() -> tuple[int, int]:
    return Server.objects.count(), Server.objects.present().count()


def test_each_server_of_a_stack_is_created_once(monkeypatch: pytest.MonkeyPatch, name: Callable[[], str]) -> None:
    wanted = template(web=group(1), one=server())

    def make() -> ActionPlan:
        return proposed("create_stack", Stack.objects.create(name=name(), template=wanted))

    number = kills(monkeypatch, make)
    assert count_servers() == (2 * number, 2 * number)
    for stack in Stack.objects.roots():
        assert statuses(stack) == {"CREATE_COMPLETE"}


def test_marked_server_is_replaced_once(monkeypatch: pytest.MonkeyPatch, name: Callable[[], str]) -> None:
    def make() -> ActionPlan:
        stack = create(name(), web=server())
        mark(part(stack, "web"))
        return proposed("update_stack", stack)

    number = kills(monkeypatch, make)
    assert count_servers() == (2 * number, number)
    for stack in Stack.objects.all():
        web = part(stack, "web")
        assert (web.generation, web.former_physical_id, web.status) == (1, None, "UPDATE_COMPLETE")


def test_nested_stack_is_replaced_once(monkeypatch: pytest.MonkeyPatch, name: Callable[[], str]) -> None:
    def make() -> ActionPlan:
        stack = create(name(), web=within(one=server()))
        mark(part(stack, "web"))
        return proposed("replace_resource", part(stack, "web"))

    number = kills(monkeypatch, make)
    assert count_servers() == (2 * number, number)
    assert Stack.objects.present().count() == 2 * number
    for stack in Stack.objects.present().roots():
        assert inside(part(stack, "web")).status == "CREATE_COMPLETE"
        assert part(stack, "web").generation == 1


def test_stack_is_deleted_with_its_resources(monkeypatch: pytest.MonkeyPatch, name: Callable[[], str]) -> None:
    number = kills(monkeypatch, lambda: proposed("delete_stack", create(name(), web=within(one=server()))))
    assert count_servers() == (number, 0)
    assert not Stack.objects.present().exists()


def test_failed_creation_sets_the_stack_in_create_failed(
    monkeypatch: pytest.MonkeyPatch, name: Callable[[], str]
) -> None:
    make_flavor("huge", vcpus=10_000)
    wanted = template(web=server("huge"))

    def make() -> ActionPlan:
        return proposed("create_stack", Stack.objects.create(name=name(), template=wanted))

    plans = list(kill_at_every_change(monkeypatch, make, 2))
    assert {plan.state for plan in plans} == {"FAILED"}
    assert set(Stack.objects.values_list("status", flat=True)) == {"CREATE_FAILED"}
