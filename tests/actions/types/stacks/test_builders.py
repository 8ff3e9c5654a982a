"""The builder of stacks writes the same rows as create_stack."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db.models import Model

from cluster.models import ProjectQuota, Server, Stack, StackResource
from tests.actions.types.stacks.builders import create, create_by_action, group, server, within
from tests.builders import make_flavor, make_node

pytestmark = pytest.mark.django_db
MODELS = (Stack, StackResource, Server, ProjectQuota)
KEYS = {"id", "stack_id", "root_id", "parent_resource_id"}
TIMES = {"created_at", "made_at", "launched_at"}
# Random: identifiers, and names of nested stacks and of members of groups.
RANDOM = re.compile(r"[0-9a-f]{8}-[-0-9a-f]{27}|(?<=['-])[a-z0-9]{12}(?=['-])")


def rows() -> Iterator[tuple[str, str]]:
    """Yield the rows of a cloud in order, without random names, and for times only whether they are set."""
    for model in MODELS:
        first: Model = model._default_manager.order_by("pk").first()
        for row in model._default_manager.order_by("pk").values():
            row.pop("updated_at", None)
            shown: dict[str, Any] = {key: row[key] is not None for key in TIMES & row.keys()}
            keys = {key: key in row and row[key] is not None for key in KEYS}
            yield model.__name__, RANDOM.sub("…", str({**row, **shown, **keys, "number": row["id"] - first.pk}))


def test_built_stack_has_the_rows_of_a_created_stack() -> None:
    make_node(vcpus=8)
    make_flavor("small")
    parts = {
        "db": server(metadata={"role": "db"}),
        "web": group(2),
        "inside": within(a=server(), b=server(depends_on=["a"]), c=group(1)),
    }
    create("shop", **parts)
    expected = list(rows())
    for model in reversed(MODELS):
        model._default_manager.all().delete()
    create_by_action("shop", **parts)
    assert list(rows()) == expected
