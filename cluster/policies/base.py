"""`PolicyType`: what a policy decides about the actions on a cluster."""

from abc import ABC
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from cluster.drivers.base import Checkpoint, proceed
from cluster.models import Cluster, Node, PolicyBinding
from watcher_site.schemas import Draft202012Validator, with_defaults


class When(StrEnum):
    BEFORE = "BEFORE"
    AFTER = "AFTER"


class PolicyRefused(Exception):
    """What is asked for may not be done; the message says why, to the person who asked."""


def nothing_excluded(action_type: str) -> Collection[str]:
    return ()


@dataclass
class PolicyCheck:
    """What a policy is asked about: an action on a cluster, or on one of its nodes.

    ``data`` is the action's: what the policies before this one decided, and where this one writes its own decision.
    The format is the document's: ``{"deletion": {"count": 2, "candidates": [UUIDs]}}``, ``{"creation": {"count":
    2}}``.
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
    """One kind of policy: a plug-in of the settings table ``POLICY_TYPES``, without a state of its own.

    ``targets`` are the action types before and after which it is asked; policies are asked in ascending ``priority``,
    for which a binding may have another number. One that ``decides`` does nothing but read tables and write data: it
    is asked when a plan is made. Others, which do something to the cloud, are asked when the action is executed; that
    may be twice, where the process that asked was lost.
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

    def pre_op(self, check: PolicyCheck) -> None:  # noqa: B027 (most are asked at one time only)
        """Decide before the action is executed.

        Raises:
            PolicyRefused: the action may not be executed.
            CloudBusy: it can not be told, or done, now: the action is tried again later.
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
        """Do what is due when a cluster gets it. May be asked twice. Raises: `PolicyRefused`."""

    def give_up_attaching(self, cluster: Cluster) -> None:
        """Undo what an `attach` did that came to no good end. May be asked twice. Raises: `PolicyRefused`."""
        self.detach(cluster)

    def detach(self, cluster: Cluster) -> None:  # noqa: B027
        """Do what is due when a cluster loses it. May be asked twice. Raises: `PolicyRefused`."""
