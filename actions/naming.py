"""What an action acts on, by its parameters."""

from collections.abc import Mapping
from typing import Any


def resource(parameters: Mapping[str, Any]) -> str:
    """Return the name of what an action acts on, or what a nop says."""
    named = (parameters.get(name) for name in ("resource_name", "resource_id", "message"))
    return next((str(name) for name in named if name), "")
