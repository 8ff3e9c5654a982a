"""JSON Schemas of the parts of a stack's template; `cluster.stacks.templates.templates` checks the whole."""

import re
from typing import Any

from cluster import messages
from cluster.drivers import server_properties
from cluster.models import StackResource
from cluster.models.clusters import UNLIMITED
from cluster.models.stacks import NAME_LENGTH
from cluster.operations.servers import REFERENCE, REQUEST
from watcher_site.validation import Draft202012Validator

MAX_RESOURCES = 1000
"""The maximum number of resources of a stack, including those of nested stacks and groups."""
MAX_PAUSE = 86_400
VERSION = 1
# Names are parts of URLs, where a leading point could be lost.
NAME = rf"^[A-Za-z0-9_][A-Za-z0-9_.-]{{0,{NAME_LENGTH - 1}}}\Z"
NAMES = messages.NAME_OF_RESOURCE.fill(most=NAME_LENGTH)
STACK_NAME = re.compile(rf"[A-Za-z][A-Za-z0-9_.-]{{0,{NAME_LENGTH - 1}}}")
"""The names that OpenStack's orchestration service allows."""
STACK_NAMES = messages.NAME_OF_STACK.fill(most=NAME_LENGTH)
Type = StackResource.Type
SIZE = {"type": "integer", "minimum": 0, "maximum": MAX_RESOURCES}


def closed(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "type": [schema["type"], "null"]}


RESOURCE = closed(
    ["type", "properties"],
    type={"enum": Type.values},
    properties={"type": "object"},
    depends_on={"type": ["string", "array"], "items": {"type": "string"}},
)
TEMPLATE = Draft202012Validator(
    closed(
        ["resources"],
        version={"enum": [VERSION]},
        description={"type": ["string", "null"]},
        resources={"type": "object", "propertyNames": {"pattern": NAME}, "additionalProperties": RESOURCE},
    )
)
PROPERTIES: dict[str, Draft202012Validator] = {
    Type.SERVER: Draft202012Validator(
        closed(
            ["flavor"],
            flavor=REFERENCE,
            image=or_null(REFERENCE),
            metadata=REQUEST["properties"]["metadata"],  # type: ignore[index]
            availability_zone=or_null(REFERENCE),
            **server_properties.PROPERTIES,
        )
    ),
    Type.SCALING_GROUP: Draft202012Validator(
        closed(
            ["size", "member"],
            size=SIZE,
            min_size=SIZE,
            max_size={**SIZE, "minimum": UNLIMITED},
            member=closed(
                ["type", "properties"],
                type={"enum": [Type.SERVER.value, Type.STACK.value]},
                properties={"type": "object"},
            ),
            rolling_update=closed(
                [],
                max_batch_size={"type": "integer", "minimum": 1, "maximum": MAX_RESOURCES},
                pause_time={"type": "number", "minimum": 0, "maximum": MAX_PAUSE},
            ),
        )
    ),
    Type.STACK: Draft202012Validator(closed(["template"], template={"type": "object"})),
}
