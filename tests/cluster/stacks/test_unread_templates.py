"""Templates, which may be large, are not read with lists of resources."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cluster.models import Stack, StackResource
from cluster.snapshot.health import load_health
from cluster.stacks.trees import load_tree
from plans.mounts.orchestration.stacks import with_stacks
from tests.builders import make_resource

pytestmark = pytest.mark.django_db
READERS: dict[str, Callable[[Stack], Any]] = {
    "tree": load_tree,
    "health": lambda stack: load_health(),
    "orchestration": lambda stack: [one.stack.name for one in with_stacks(StackResource.objects.filter(stack=stack))],
}


@pytest.mark.parametrize("reader", READERS)
def test_query_does_not_read_the_template(reader: str) -> None:
    stack = Stack.objects.create(name="shop")
    make_resource(stack, "web")
    with CaptureQueriesContext(connection) as queries:
        READERS[reader](stack)
    assert not [query["sql"] for query in queries if '"template"' in query["sql"]]
