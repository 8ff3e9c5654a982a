"""The states of stacks and their resources, and the order in which members go."""

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


def test_what_is_begun_and_finished_says_what_was_done(stack):
    stack.begin(Verb.CREATE)
    stack.finish()
    assert (stack.status, stack.status_reason) == (StackStatus.CREATE_COMPLETE, "CREATE completed successfully")


def test_what_fails_says_what_was_tried_and_why(stack):
    stack.begin(Verb.UPDATE)
    stack.fail("No valid host was found.")
    assert (stack.status, stack.status_reason) == (StackStatus.UPDATE_FAILED, "No valid host was found.")


def test_a_mark_without_words_has_those_that_clients_know(stack):
    resource = make(stack, "web", marked=True)
    assert (resource.status, resource.status_reason) == (StackStatus.CHECK_FAILED, MARKED)


def test_what_is_being_deleted_is_not_marked(stack):
    resource = make(stack, "web")
    resource.begin(Verb.DELETE)
    with pytest.raises(TransitionNotAllowed):
        resource.mark_unhealthy()


def test_only_what_was_marked_is_cleared(stack):
    with pytest.raises(TransitionNotAllowed):
        make(stack, "web").mark_healthy()


def test_members_that_failed_go_first_then_the_oldest_then_by_name(stack):
    now = timezone.now()
    make(stack, "young", age=1)
    make(stack, "marked", age=0, marked=True)
    make(stack, "old", age=9)
    for name in ("twin-b", "twin-a"):
        StackResource.objects.create(stack=stack, name=name, type="server", made_at=now - timedelta(hours=5))
    assert [one.name for one in stack.resources.failed_first()] == ["marked", "old", "twin-a", "twin-b", "young"]


def test_what_takes_the_place_of_another_remembers_it_until_that_is_deleted(stack):
    resource = make(stack, "web")
    resource.set_counterpart("first", 0)
    resource.set_counterpart("second", 1)
    assert (resource.physical_id, resource.former_physical_id, resource.generation) == ("second", "first", 1)


def test_a_project_has_one_stack_of_a_name(stack):
    with pytest.raises(IntegrityError), transaction.atomic():
        Stack.objects.create(name="shop")
