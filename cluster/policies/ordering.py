"""The order in which the policies of a cluster are evaluated, if one needs the decision of another."""

from collections.abc import Iterable

from cluster.models import Policy, PolicyBinding
from watcher_site import plugins


def find_disorder(policy: Policy, priority: int | None, others: Iterable[PolicyBinding]) -> str | None:
    """Return why a policy cannot have this priority among the other policies of a cluster; None, if it can.

    Args:
        priority: None for that of its type.
        others: with their policies.
    """
    types = plugins.load("POLICY_TYPES")
    own = types.get(policy.type)
    if own is None:
        return None
    wanted = own.priority if priority is None else priority
    for other in others:
        its = types.get(other.policy.type)
        if its is None or other.policy_id == policy.pk:
            continue
        if other.policy.type in own.reads and wanted <= other.priority:
            return (
                f"priority: policy '{policy.name}' needs what policy '{other.policy.name}' decides, and must be asked "
                f"after it: it must be greater than {other.priority}."
            )
        if policy.type in its.reads and wanted >= other.priority:
            return (
                f"priority: policy '{other.policy.name}' needs what policy '{policy.name}' decides, and must be asked "
                f"after it: it must be less than {other.priority}."
            )
    return None
