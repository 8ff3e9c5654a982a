"""The lookup of stacks and of their resources by name, ID and reference."""

from uuid import uuid4

import pytest

from cluster.models import Stack, StackResource
from cluster.stacks.lookup import find_resource, find_stack, stacks_within
from watcher_site.refusals import Invalid, NotFound

pytestmark = pytest.mark.django_db

STACKS = Stack.objects.all()


@pytest.fixture
def shop():
    return Stack.objects.create(name="shop")


def make(stack, name, **columns):
    return StackResource.objects.create(stack=stack, name=name, **{"type": "server", **columns})


def test_stack_is_found_by_name_and_by_id(shop):
    assert find_stack(STACKS.all(), "shop") == find_stack(STACKS.all(), str(shop.uuid)) == shop


def test_id_takes_precedence_over_a_name_in_the_format_of_an_id(shop):
    named = Stack.objects.create(name=str(uuid4()))
    twin = Stack.objects.create(name=str(shop.uuid))
    assert find_stack(STACKS.all(), named.name) == named
    assert find_stack(STACKS.all(), twin.name) == shop


def test_name_of_stacks_in_several_projects_is_ambiguous(shop):
    Stack.objects.create(name="shop", project_id="other")
    with pytest.raises(Invalid, match="Multiple stacks are called shop"):
        find_stack(STACKS.all(), "shop")


def test_existing_stack_takes_precedence_over_deleted_stacks_of_its_name(shop):
    Stack.objects.filter(pk=shop.pk).soft_delete()
    Stack.objects.filter(pk=Stack.objects.create(name="shop").pk).soft_delete()
    existing = Stack.objects.create(name="shop")
    assert find_stack(STACKS.all(), "shop") == existing


@pytest.mark.parametrize("name", ["store", "SHOP"])
def test_name_and_id_of_different_stacks_are_not_found(shop, name):
    with pytest.raises(NotFound, match="could not be found"):
        find_stack(STACKS.all(), str(shop.uuid), name)


def test_invalid_id_with_a_valid_name_is_not_found(shop):
    with pytest.raises(NotFound):
        find_stack(STACKS.all(), "1", "shop")


def test_resource_is_found_by_name_then_physical_id_then_reference(shop):
    web, other = make(shop, "web", physical_id="7"), make(shop, "7", physical_id="8")
    referred = make(shop, "db")
    assert [find_resource(shop, called) for called in ("web", "7", "8", "shop-db")] == [web, other, other, referred]


def test_physical_id_of_several_resources_is_ambiguous(shop):
    make(shop, "a", physical_id="7")
    make(shop, "b", physical_id="7")
    with pytest.raises(Invalid) as refusal:
        find_resource(shop, "7")
    assert str(refusal.value) == "Multiple resources were found with the physical ID (7)."


@pytest.mark.parametrize("called", ["web", "7", "shop-web", "shop-shop-web"])
def test_deleted_resource_and_resource_of_another_stack_are_not_found(shop, called):
    make(Stack.objects.create(name="other"), "web", physical_id="7")
    StackResource.objects.filter(pk=make(shop, "web", physical_id="7").pk).soft_delete()
    with pytest.raises(NotFound) as refusal:
        find_resource(shop, called)
    assert str(refusal.value) == f"The Resource ({called}) could not be found in Stack shop."


def test_nested_stacks_are_found_to_the_requested_depth(shop, django_assert_num_queries):
    above, stacks = shop, [shop]
    for name in "abc":
        holder = make(above, name, type="stack")
        above = Stack.objects.create(name=name, root=shop, parent_resource=holder)
        stacks.append(above)
    keys = [stack.pk for stack in stacks]
    with django_assert_num_queries(3):
        assert stacks_within(shop, 0) == keys[:1]
        assert stacks_within(shop, 9) == keys
        assert stacks_within(stacks[1], 1) == keys[1:3]
