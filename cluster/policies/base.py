"""The base class of policy types (`PolicyType`), with functions that several types use."""

from abc import ABC
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from cluster.drivers.base import Checkpoint, proceed
from cluster.models import Cluster, Node, PolicyBinding
from watcher_site.validation import Draft202012Validator, with_defaults

# The changes of the number of nodes by actions without a count. Other actions store the change in their data before
# the policies are applied.
DEFAULT_CHANGES = {"CLUSTER_SCALE_OUT": 1, "CLUSTER_SCALE_IN": -1, "NODE_CREATE": 1, "NODE_DELETE": -1}
MAX_SECONDS = 365 * 24 * 3600
"""The maximum of periods, a year in seconds."""


class When(StrEnum):
    BEFORE = "BEFORE"
    AFTER = "AFTER"


class PolicyRefused(Exception):
    """A policy forbids the operation; the message gives the reason to the user who requested it."""


def nothing_excluded(action_type: str) -> Collection[str]:
    return ()


@dataclass
class PolicyCheck:
    """The input of a policy: an action on a cluster or on one of its nodes.

    ``data`` is that of the action, with the decisions of earlier policies, to which the policy adds its own. The
    format is Senlin's (docs/policies.md): ``{"deletion": {"count": 2, "candidates": [UUIDs]}}``, ``{"creation":
    {"count": 2}}``.
    """

    cluster: Cluster
    binding: PolicyBinding
    action_type: str
    inputs: Mapping[str, Any]
    data: dict[str, Any]
    node: Node | None = None
    left_out: Collection[str] = ()
    """The UUIDs of nodes that must not be changed, because a user skipped their actions."""
    excluded: Callable[[str], Collection[str]] = nothing_excluded
    """Returns the UUIDs of the members for which exclusions skip an action type, such as ``NODE_DELETE``."""
    checkpoint: Checkpoint = proceed
    """To be called at intervals during long operations."""

    @property
    def policy_type(self) -> str:
        return str(self.binding.policy.type)


class PolicyType(ABC):
    """The base class of policy types: stateless plug-ins in the settings table ``POLICY_TYPES``.

    ``targets`` are the action types before and after which the policy is applied, in ascending ``priority``, which a
    binding may override. A policy that ``decides`` only reads tables and writes ``data``, and is applied when a plan
    is created. Other policies change the cloud, and are applied when the action is executed, again if its process is
    lost.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    priority: ClassVar[int]
    targets: ClassVar[Mapping[When, frozenset[str]]]
    schema: ClassVar[Mapping[str, Any]]
    """The JSON Schema of its properties, the ``spec`` of a `Policy`."""
    decides: ClassVar[bool] = True
    is_single: ClassVar[bool] = True
    """Whether a cluster can have only one policy of the type."""

    reads: ClassVar[frozenset[str]] = frozenset()
    """The types whose decisions it needs, and whose policies must therefore be applied before it."""

    validator: ClassVar[Draft202012Validator]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "schema" in vars(cls):
            cls.validator = Draft202012Validator(dict(cls.schema))

    def __init__(self, spec: Mapping[str, Any]) -> None:
        """Store properties that match the schema, with defaults for missing ones."""
        self.spec = with_defaults(self.schema, spec)

    @classmethod
    def find_flaw(cls, spec: Mapping[str, Any]) -> str | None:
        """Return the first error of properties that the schema cannot express, or None."""
        return None

    def pre_op(self, check: PolicyCheck) -> None:  # noqa: B027 (most are applied at one time only)
        """Decide before the action is executed.

        Raises:
            PolicyRefused: the action must not be executed.
            CloudBusy: a decision is not possible now; the action is retried later.
        """

    def require_still(self, check: PolicyCheck) -> None:  # noqa: B027
        """Check that an earlier decision, made when the plan was created, is still valid when the action begins.

        Raises:
            PolicyRefused: the decision is no longer valid.
        """

    def post_op(self, check: PolicyCheck) -> None:  # noqa: B027
        """Act after the action has succeeded; a policy that changes the cloud also after a partial success.

        Raises: as `pre_op`.
        """

    def attach(self, cluster: Cluster) -> None:  # noqa: B027
        """Prepare a cluster to which the policy is attached. Must be idempotent. Raises: `PolicyRefused`."""

    def give_up_attaching(self, cluster: Cluster) -> None:
        """Undo an `attach` that failed. Must be idempotent. Raises: `PolicyRefused`."""
        self.detach(cluster)

    def detach(self, cluster: Cluster) -> None:  # noqa: B027
        """Clean up a cluster from which the policy is detached. Must be idempotent. Raises: `PolicyRefused`."""


def find_change(check: PolicyCheck) -> int:
    """Return the change of the number of nodes: as decided by an earlier policy, else as requested."""
    if decided := check.data.get("creation", {}).get("count"):
        return int(decided)
    if decided := check.data.get("deletion", {}).get("count"):
        return -int(decided)
    return DEFAULT_CHANGES.get(check.action_type, 0) * int(check.inputs.get("count", 1))


def find_candidates(check: PolicyCheck) -> list[str]:
    """Return the UUIDs of the nodes that will leave, or an empty list if they have not been chosen."""
    if check.node:
        return [str(check.node.uuid)]
    candidates: list[str] = check.data.get("deletion", {}).get("candidates", [])
    return candidates


def section(description: str, **properties: Any) -> dict[str, Any]:
    """Return the schema of an optional object within the properties of a policy."""
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
        "maximum": MAX_SECONDS,
        "default": default,
        "description": f"{description}, in seconds",
    }
