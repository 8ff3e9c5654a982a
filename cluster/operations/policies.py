"""Create, rename and delete policies, for the API, the console and the commands."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.template.defaultfilters import pluralize

from cluster import messages
from cluster.models import Policy, PolicyBinding
from cluster.operations.named_records import save
from cluster.operations.profiles import checked_name
from cluster.policies.base import PolicyType
from watcher_site import plugins
from watcher_site.database.locks import lock_present
from watcher_site.database.text import require_storable
from watcher_site.history import differences, record
from watcher_site.refusals import Conflict, Invalid
from watcher_site.validation import find_violation


def create_policy(name: str, type: str, spec: Any = None) -> Policy:
    """Create a policy.

    Args:
        type: the name of an installed policy type.
        spec: properties that match the schema of the type.

    Raises:
        Invalid: the message names the field and the rule.
        Conflict: another policy has the name.
    """
    checked = check_spec(type, spec)
    policy = Policy(name=checked_name(name), type=type, spec=checked)
    save(policy, details={"type": type, "spec": checked})
    return policy


def check_spec(type: str, spec: Any) -> dict[str, Any]:
    """Return the checked properties of a policy.

    Raises:
        Invalid: the message names the field and the rule.
    """
    policy_type, properties = find_type(type), {} if spec is None else spec
    require_storable("spec", properties)
    if violation := find_violation(policy_type.validator, properties):
        raise Invalid(f"spec: {violation}")
    if flaw := policy_type.find_flaw(properties):
        raise Invalid(f"spec: {flaw}")
    return dict(properties)


def find_type(name: str) -> type[PolicyType]:
    """Return a policy type by its name. Raises: `Invalid`."""
    types = plugins.load("POLICY_TYPES")
    if not isinstance(name, str) or name not in types:
        raise Invalid(messages.NO_POLICY_TYPE.fill(name=name, names=", ".join(sorted(types))))
    return types[name]


@transaction.atomic
def change_policy(policy: Policy, changes: Mapping[str, Any]) -> Policy:
    """Change the name of a policy. Its type and properties cannot change, because clusters use them.

    Raises:
        Invalid: the message names the field and the rule.
        Conflict: another policy has the name.
        NotFound: the policy was deleted meanwhile.
    """
    locked = lock_present(policy)
    if unchangeable := changes.keys() - {"name"}:
        raise Invalid(messages.POLICY_FIXED.fill(field=min(unchangeable)))
    if "name" in changes:
        before, locked.name = locked.name, checked_name(changes["name"])
        save(locked, ["name"], differences({"name": before}, {"name": locked.name}))
    return locked


def count_clusters(policy: Policy) -> int:
    """Return the number of clusters to which a policy is attached. It can be deleted only if there are none."""
    return PolicyBinding.objects.present().filter(policy=policy).count()


@transaction.atomic
def delete_policy(policy: Policy) -> None:
    """Delete a policy that no cluster uses.

    Raises:
        Conflict: clusters use it.
        NotFound: it was deleted meanwhile.
    """
    locked = lock_present(policy)
    if number := count_clusters(locked):
        raise Conflict(
            messages.IN_USE.fill(kind="Policy", uuid=policy.uuid, users=f"{number} cluster{pluralize(number)}")
        )
    Policy.objects.filter(pk=locked.pk).soft_delete()
    record("policy.delete", locked)
