"""The sizes that one server may have on a node, whatever is free there: Placement's min_unit, max_unit, step_size."""

from collections.abc import Mapping

UNITS = {"vcpus": "VCPUs", "memory": "MB of memory", "disk": "GB of disk"}
# By resource: ``min_unit``, ``max_unit`` and ``step_size``. A resource that is missing has no such rules.
AllocationUnits = Mapping[str, Mapping[str, int]]


def find_misfit(rules: AllocationUnits | None, size: Mapping[str, int]) -> str:
    """Return the rule that one server of this size breaks, or nothing; a resource that it does not use has no rule."""
    for resource, rule in (rules or {}).items():
        amount, unit = size[resource], UNITS[resource]
        if not amount:
            continue
        if amount > rule["max_unit"]:
            return f"at most {rule['max_unit']} {unit} for one server, not {amount}"
        if amount < rule["min_unit"]:
            return f"at least {rule['min_unit']} {unit} for one server, not {amount}"
        if amount % rule["step_size"]:
            return f"{unit} in steps of {rule['step_size']}, not {amount}"
    return ""
