"""`PolicyType`: what a policy decides about the actions on a cluster, and what several types share."""

from abc import ABC
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from cluster.drivers.base import Checkpoint, proceed
from cluster.models import Cluster, Node, PolicyBinding
from watcher_site.validation import Draft202012Validator, with_defaults

# Of actions on a single node, and of those that scale by one unless a number is said. All others say what they come to
# in their data, before they ask the policies.
BY_ONE = {"CLUSTER_SCALE_OUT": 1, "CLUSTER_SCALE_IN": -1, "NODE_CREATE": 1, "NODE_DELETE": -1}
LONGEST = 365 * 24 * 3600
"""Seconds: no policy has anything wait for longer."""


class When(StrEnum):
    BEFORE = "BEFORE"
    AFTER = "AFTER"


class PolicyRefused(Exception):
    """A policy forbids the operation; the message gives the reason to the person who requested it."""


def nothing_excluded(action_type: str) -> Collection[str]:
    return ()


@dataclass
class PolicyCheck:
    """The input of a policy: an action on a cluster or on one of its nodes.

    ``data`` is the action's: the decisions of the policies before this one, and the place for its own. The format is
    Senlin's (docs/policies.md): ``{"deletion": {"count": 2, "candidates": [UUIDs]}}``, ``{"creation": {"count": 2}}``.
    """

    cluster: Cluster
    binding: PolicyBinding
    action_type: str
    inputs: Mapping[str, Any]
    data: dict[str, Any]
    node: Node | None = None
    left_out: Collection[str] = ()
    """The UUIDs of nodes that a person does not want touched, whatever was decided about them."""
    excluded: Callable[[str], Collection[str]] = nothing_excluded
    """Returns the UUIDs of the members on which no action of a type, such as ``NODE_DELETE``, may be executed now."""
    checkpoint: Checkpoint = proceed
    """To be called every now and then where the policy does something that takes long."""

    @property
    def policy_type(self) -> str:
        return str(self.binding.policy.type)


class PolicyType(ABC):
    """A kind of policy: a stateless plug-in of the settings table ``POLICY_TYPES``.

    ``targets`` are the action types before and after which the policy is applied, in ascending ``priority``, which a
    binding may override. A policy that ``decides`` only reads tables and writes data: it is applied when a plan is
    made. Others change the cloud, and are applied when the action is executed, twice if the process is lost.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    priority: ClassVar[int]
    targets: ClassVar[Mapping[When, frozenset[str]]]
    schema: ClassVar[Mapping[str, Any]]
    """Of its properties: the ``spec`` of a `Policy`."""
    decides: ClassVar[bool] = True
    is_single: ClassVar[bool] = True
    """Whether a cluster can have but one of the type."""

    reads: ClassVar[frozenset[str]] = frozenset()
    """The types whose decisions it needs: their policies must be evaluated before."""

    validator: ClassVar[Draft202012Validator]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "schema" in vars(cls):
            cls.validator = Draft202012Validator(dict(cls.schema))

    def __init__(self, spec: Mapping[str, Any]) -> None:
        """Take properties that the schema allows; its defaults are filled in."""
        self.spec = with_defaults(self.schema, spec)

    @classmethod
    def find_flaw(cls, spec: Mapping[str, Any]) -> str | None:
        """Return which property breaks which rule that no schema can say, if one does."""
        return None

    def pre_op(self, check: PolicyCheck) -> None:  # noqa: B027 (most are applied at one time only)
        """Decide before the action is executed.

        Raises:
            PolicyRefused: the action may not be executed.
            CloudBusy: a decision is not possible now: the action is tried again later.
        """

    def require_still(self, check: PolicyCheck) -> None:  # noqa: B027
        """Look whether what was decided, perhaps long ago when a plan was made, may still be done now that it begins.

        Raises:
            PolicyRefused: it may not, and why.
        """

    def post_op(self, check: PolicyCheck) -> None:  # noqa: B027
        """Do what is due once the action has succeeded; one that does not decide, also where only some of it did.

        Raises: as `pre_op`.
        """

    def attach(self, cluster: Cluster) -> None:  # noqa: B027
        """Prepare a cluster that gets the policy. Must be idempotent. Raises: `PolicyRefused`."""

    def give_up_attaching(self, cluster: Cluster) -> None:
        """Undo an `attach` that failed. Must be idempotent. Raises: `PolicyRefused`."""
        self.detach(cluster)

    def detach(self, cluster: Cluster) -> None:  # noqa: B027
        """Clean up a cluster that loses the policy. Must be idempotent. Raises: `PolicyRefused`."""


def find_change(check: PolicyCheck) -> int:
    """Return the change of the number of nodes, negative for a loss: as decided by a policy, or else as requested."""
    if decided := check.data.get("creation", {}).get("count"):
        return int(decided)
    if decided := check.data.get("deletion", {}).get("count"):
        return -int(decided)
    return BY_ONE.get(check.action_type, 0) * int(check.inputs.get("count", 1))


def find_named(check: PolicyCheck) -> list[str]:
    """Return the UUIDs of the nodes that are to go, where it is known already which."""
    if check.node:
        return [str(check.node.uuid)]
    named: list[str] = check.data.get("deletion", {}).get("candidates", [])
    return named


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
