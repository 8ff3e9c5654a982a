"""The restoration of the migrated rows after a test that commits."""

from collections.abc import Iterable

import pytest
from django.contrib.auth.models import Group, Permission
from django.db.models import Model
from django.test import TransactionTestCase

from audits.models import Goal
from cluster.models import ComputeNode
from tests.builders import make_node

pytestmark = pytest.mark.django_db(transaction=True)
KINDS: Iterable[type[Model]] = (Goal, Group, Group.permissions.through, Permission)


def migrated_rows() -> list[list[dict[str, object]]]:
    return [list(kind._default_manager.order_by("pk").values()) for kind in KINDS]


def test_rows_are_those_of_the_migrated_database_after_a_test_that_commits() -> None:
    before = migrated_rows()
    make_node()
    Goal.objects.create(name="new", display_name="New")
    Goal.objects.filter(name="dummy").update(display_name="Changed", deleted_at=None)
    Group.objects.get(name="reader").delete()
    Permission.objects.filter(codename__startswith="view").delete()
    changed = migrated_rows()
    TransactionTestCase._fixture_teardown(None)
    assert all(rows != former for rows, former in zip(changed, before, strict=True))
    assert migrated_rows() == before
    assert not ComputeNode.objects.exists()
