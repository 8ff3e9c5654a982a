"""The states of stacks and their resources, and the order in which members are removed."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from cluster.models import Stack, StackResource, StackStatus
from cluster.models.stacks import MARKED, Verb
from watcher_site.state_machine import TransitionNotAllowed

pytestmark = pytest.mark.django_db


@pytest.fixture
def stack():
    return Stack.objects.create(name="shop")


def make(stack, name, *, age=0, marked=False):
    made_at = timezone.now() - timedelta(hours=age)
    resource = StackResource.objects.create(stack=stack, name=name, type="server", made_at=made_at)
    if marked:
        resource.mark_unhealthy()
        resource.save_state()
    return resource


def test_finished_operation_is_complete_with_a_reason(stack):
    stack.begin(Verb.CREATE)
    stack.finish()
    assert (stack.status, stack.status_reason) == (StackStatus.CREATE_COMPLETE, "CREATE completed successfully")


def test_failed_operation_has_its_reason(stack):
    stack.begin(Verb.UPDATE)
    stack.fail("No valid host was found.")
    assert (stack.status, stack.status_reason) == (StackStatus.UPDATE_FAILED, "No valid host was found.")


def test_mark_without_a_reason_has_the_default_reason(stack):
    resource = make(stack, "web", marked=True)
    assert (resource.status, resource.status_reason) == (StackStatus.CHECK_FAILED, MARKED)


def test_resource_being_deleted_cannot_be_marked_unhealthy(stack):
    resource = make(stack, "web")
    resource.begin(Verb.DELETE)
    with pytest.raises(TransitionNotAllowed):
        resource.mark_unhealthy()


def test_unmarked_resource_cannot_be_marked_healthy(stack):
    with pytest.raises(TransitionNotAllowed):
        make(stack, "web").mark_healthy()


def test_failed_members_are_listed_first_then_the_oldest_then_by_name(stack):
    now = timezone.now()
    make(stack, "young", age=1)
    make(stack, "marked", age=0, marked=True)
    make(stack, "old", age=9)
    for name in ("twin-b", "twin-a"):
        StackResource.objects.create(stack=stack, name=name, type="server", made_at=now - timedelta(hours=5))
    assert [one.name for one in stack.resources.failed_first()] == ["marked", "old", "twin-a", "twin-b", "young"]


def test_replaced_resource_keeps_the_former_physical_id(stack):
    resource = make(stack, "web")
    resource.set_counterpart("first", 0)
    resource.set_counterpart("second", 1)
    assert (resource.physical_id, resource.former_physical_id, resource.generation) == ("second", "first", 1)


def test_stack_name_is_unique_in_a_project(stack):
    with pytest.raises(IntegrityError), transaction.atomic():
        Stack.objects.create(name="shop")
