"""Schemas that several policies share."""

from typing import Any

LONGEST = 365 * 24 * 3600
"""Seconds: no policy has anything wait for longer."""


def section(description: str, **properties: Any) -> dict[str, Any]:
    """Return the schema of an object within the properties of a policy; it may be left out where all its own may."""
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "additionalProperties": False,
        "default": {},
    }


def seconds(description: str, default: int) -> dict[str, Any]:
    return {
        "type": "integer",
        "minimum": 0,
        "maximum": LONGEST,
        "default": default,
        "description": f"{description}, in seconds",
    }
