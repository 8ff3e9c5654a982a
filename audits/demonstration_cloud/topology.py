"""The topology file of the demonstration's cloud."""

from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

from cluster.json_lines import parse_document

TOPOLOGY = Path(__file__).with_name("demonstration.json")


def read() -> dict[str, Any]:
    document: dict[str, Any] = parse_document(TOPOLOGY.read_bytes())[1]
    return document


@cache
def own(collection: str) -> frozenset[UUID]:
    """Return the UUIDs of the demonstration's resources of a kind, such as ``servers``."""
    return frozenset(UUID(item["uuid"]) for item in read()[collection])
