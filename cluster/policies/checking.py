"""Application of a cluster's policies, each once and in order, and checks of that order."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from cluster.drivers.base import Checkpoint, proceed
from cluster.models import Cluster, Node, Policy, PolicyBinding
from cluster.policies import messages
from cluster.policies.base import PolicyCheck, PolicyRefused, PolicyType, When, nothing_excluded
from watcher_site import plugins

Data = dict[str, Any]
COMPLETED = "Completed policy checking."
DECIDED = "decided"
"""The key in an action's data which is set when all decisions before its execution were made."""
APPLIED = "asked"
"""The key in an action's data of the policies that were applied, by the time of applying them."""


def check_policies(
    when: When,
    cluster: Cluster,
    action_type: str,
    inputs: Mapping[str, Any],
    data: Mapping[str, Any],
    save: Callable[[Data], None],
    *,
    node: Node | None = None,
    deciding_only: bool = False,
    acting_only: bool = False,
    left_out: Collection[str] = (),
    excluded: Callable[[str], Collection[str]] = nothing_excluded,
    checkpoint: Checkpoint = proceed,
) -> Data:
    """Apply the policies that were not applied yet, and return the action's data with their decisions.

    If all had decided before, check first that their decisions still hold.

    Args:
        data: the last saved data of the action.
        save: is called with the data after each policy, so that after a crash only the remaining ones are applied.
        deciding_only: skip policies that change the cloud.
        acting_only: skip all other policies.
        left_out, excluded, checkpoint: as in `PolicyCheck`.

    Raises:
        PolicyRefused: the first refusal; the message names the policy.
        CloudBusy: a policy cannot decide now.
    """
    decided = deepcopy(dict(data))
    how = (left_out, excluded, checkpoint)
    is_decided = when is When.BEFORE and decided.get(DECIDED)
    policies = [
        (load_policy(binding), PolicyCheck(cluster, binding, action_type, inputs, decided, node, *how))
        for binding in PolicyBinding.objects.enabled_for(cluster)
    ]
    due = [(policy, check) for policy, check in policies if action_type in policy.targets.get(when, ())]
    for policy, check in due if is_decided else ():
        with recording_refusals(check, save):
            policy.require_still(check)
    for policy, check in due:
        applied, uuid = decided.setdefault(APPLIED, {}).setdefault(when.value, []), str(check.binding.uuid)
        is_skipped = is_decided or acting_only if policy.decides else deciding_only
        if uuid in applied or is_skipped:
            continue
        with recording_refusals(check, save):
            policy.pre_op(check) if when is When.BEFORE else policy.post_op(check)
        applied.append(uuid)
        save({**decided, "status": "OK", "reason": f"Policy '{check.binding.policy.name}' was applied."})
    return {**decided, "status": "OK", "reason": COMPLETED}


@contextmanager
def recording_refusals(check: PolicyCheck, save: Callable[[Data], None]) -> Iterator[None]:
    """Add the name of the policy to a refusal, and store the refusal in the action's data."""
    try:
        yield
    except PolicyRefused as refusal:
        reason = messages.REFUSED_BY_POLICY.fill(name=check.binding.policy.name, reason=refusal)
        save({**check.data, "status": "ERROR", "reason": reason})
        raise PolicyRefused(reason) from refusal


def load_policy(binding: PolicyBinding) -> PolicyType:
    """Return the policy of a binding.

    Raises:
        PolicyRefused: its type is not installed.
    """
    policy_type = plugins.load("POLICY_TYPES").get(binding.policy.type)
    if policy_type is None:
        raise PolicyRefused(messages.TYPE_NOT_INSTALLED.fill(type=binding.policy.type))
    policy: PolicyType = policy_type(binding.policy.spec)
    return policy


def find_disorder(policy: Policy, priority: int | None, others: Iterable[PolicyBinding]) -> str | None:
    """Return why a policy cannot have this priority among the other policies of a cluster, or None if it can.

    Args:
        priority: None for the default of its type.
        others: the bindings of the cluster, with their policies.
    """
    types = plugins.load("POLICY_TYPES")
    policy_type = types.get(policy.type)
    if policy_type is None:
        return None
    effective_priority = policy_type.priority if priority is None else priority
    for other in others:
        other_type = types.get(other.policy.type)
        if other_type is None or other.policy_id == policy.pk:
            continue
        if other.policy.type in policy_type.reads and effective_priority <= other.priority:
            return messages.PRIORITY_TOO_LOW.fill(name=policy.name, other=other.policy.name, priority=other.priority)
        if policy.type in other_type.reads and effective_priority >= other.priority:
            return messages.PRIORITY_TOO_HIGH.fill(name=other.policy.name, other=policy.name, priority=other.priority)
    return None
