"""The order in which members of a scaling group are removed and replaced.

See docs/compatibility.md, "Order of group members".
"""

from collections.abc import Mapping, Sequence
from typing import Any

from cluster.models import StackResource
from cluster.stacks.decisions import Change, Kind, Template
from cluster.stacks.names import random_name


def template_within(wanted: Mapping[str, Any], members: Sequence[str] = ()) -> Template:
    """Return the template of what is within a nesting resource.

    Args:
        members: the names of those that a group has, in the order in which they go. The last ones stay.
    """
    properties = wanted["properties"]
    if wanted["type"] == StackResource.Type.STACK:
        template: Template = properties["template"]
        return template
    size = properties["size"]
    staying = members[max(len(members) - size, 0) :]
    names = [*staying, *(random_name() for _ in range(size - len(staying)))]
    member = {**properties["member"], "depends_on": []}
    return {"version": 1, "description": "", "resources": dict.fromkeys(names, member)}


def batched(new: Sequence[Change], in_turn: Sequence[Change], size: int) -> list[list[Change]]:
    """Return the steps of a rolling update: new members come with the first, and members go with the last.

    Only what is changed or replaced is counted.

    Args:
        in_turn: what is done to the members that stand, in their order.
        size: how many are changed or replaced in one step.
    """
    coming = [*new, *(change for change in in_turn if change.kind == Kind.CREATE)]
    going = [change for change in in_turn if change.kind == Kind.DELETE]
    staying = [change for change in in_turn if change.kind in (Kind.UPDATE, Kind.REPLACE)]
    steps = [staying[start : start + size] for start in range(0, len(staying), size)] or [[]]
    steps[0] = [*coming, *steps[0]]
    steps[-1] = [*steps[-1], *going]
    return steps
