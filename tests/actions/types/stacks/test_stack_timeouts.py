"""The timeout of a stack (``timeout_mins``), which applies to the actions of each operation on it."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from actions.models import Action
from cluster.models import Stack
from plans.mounts.orchestration.views import Shapes
from plans.operations.stack_progress import with_progress
from tests.actions.types.stacks.builders import group, server, template, within
from tests.api import Caller, fault
from tests.builders import make_flavor, make_node
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db

SHOP = {"name": "shop", "template": template(web=within(one=server()))}


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    make_node()
    make_flavor("small")
    return Caller(cloud_admin, "1.11")


def request(api: Caller, verb: str, path: str, **body: Any) -> Stack:
    """Request an operation, run it to its end, and return its stack."""
    answer = getattr(api, verb)(path, body)
    assert answer.status_code == 202, fault(answer)
    run_waiting()
    found: Stack = Stack.objects.get(uuid=answer.json()["stack"])
    return found


def path(stack: Stack) -> str:
    return f"/stacks/{stack.name}/{stack.uuid}"


def timeouts() -> set[int | None]:
    return set(Action.objects.values_list("timeout", flat=True))


def test_operation_and_its_derived_actions_get_the_timeout_of_the_stack(api: Caller) -> None:
    stack = request(api, "post", "/stacks", **SHOP, timeout_mins=240)
    assert (stack.timeout_mins, timeouts()) == (240, {14_400})
    assert Action.objects.count() == 3


def test_stack_without_a_timeout_uses_the_default(api: Caller) -> None:
    stack = request(api, "post", "/stacks", **SHOP)
    assert (stack.timeout_mins, timeouts()) == (None, {None})


def test_planned_actions_get_the_timeout_of_the_stack(api: Caller) -> None:
    request(api, "post", "/stacks", **SHOP, timeout_mins=5, plan_only=True)
    assert timeouts() == {300}


def test_update_keeps_or_changes_the_timeout_and_a_deletion_uses_it(api: Caller) -> None:
    stack = request(api, "post", "/stacks", **SHOP, timeout_mins=5)
    assert request(api, "put", path(stack), template=template(web=server())).timeout_mins == 5
    assert request(api, "put", path(stack), timeout_mins=7).timeout_mins == 7
    assert Action.objects.filter(target=str(stack.uuid)).latest("pk").timeout == 420
    api.delete(path(stack))
    assert Action.objects.filter(target=str(stack.uuid)).latest("pk").timeout == 420


def test_planned_update_does_not_change_the_timeout_of_the_stack(api: Caller) -> None:
    stack = request(api, "post", "/stacks", **SHOP, timeout_mins=5)
    assert request(api, "put", path(stack), timeout_mins=7, plan_only=True).timeout_mins == 5


def test_both_apis_show_the_timeout(api: Caller) -> None:
    stack = request(api, "post", "/stacks", **SHOP, timeout_mins=5)
    assert api.get(path(stack)).json()["timeout_mins"] == 5
    shown = with_progress(Stack.objects.filter(pk=stack.pk)).get()
    assert Shapes("").whole_stack(shown)["timeout_mins"] == 5


@pytest.mark.parametrize("value", [0, -1, "5", True, 1.5, 35_791_395, {}])
def test_invalid_timeout_is_refused(api: Caller, value: Any) -> None:
    answer = api.post("/stacks", {"name": "shop", "template": template(web=group(0)), "timeout_mins": value})
    assert (answer.status_code, "timeout_mins" in fault(answer)) == (400, True)
    assert not Stack.objects.exists()
