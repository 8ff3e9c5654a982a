"""What the actions on clusters share: the lock, the policies, the decision, the node actions, and what comes of them.

An action on a cluster is executed in two parts. First it decides: what the policies and its inputs come to is saved
as its data, and then begun: the cluster's row says so, and node actions are derived. When these have ended it goes on,
and settles the cluster. Whoever executes it again after a crash finds the decision, and does the same.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from django.db import transaction

from actions.models import Action
from actions.proposals import ProposedAction
from actions.types.base import (
    ActionFailed,
    ActionSkipException,
    ActionType,
    Answer,
    Outcome,
    Recovery,
)
from actions.types.clusters.health import settle
from actions.types.clusters.locking import refusal, take_lock
from actions.types.clusters.nodes import schema_of
from actions.types.clusters.policies import Data, ask_policies
from cluster.models import Cluster, Node
from cluster.policies.base import When
from watcher_site.state import ConcurrentTransition

DECIDED = "decided"
"""The key in an action's data that says that nothing is left to be decided."""


class ClusterAction(ActionType, ABC):
    """An action on one cluster, ``resource_id``. Its ``resource_name`` is there for people to read."""

    schema = schema_of()
    at_work: ClassVar[Cluster.Status]
    """What the cluster's status is meanwhile."""

    # What each of them is about.

    @abstractmethod
    def decide(self, cluster: Cluster, data: Data) -> None:
        """Complete the data with what is to be done, where the policies have not decided it.

        Raises:
            ActionFailed: it may not be done.
        """

    def apply(self, cluster: Cluster, data: Data) -> None:
        """Write what is so from the beginning, in one transaction with the cluster's row, which is saved thereafter.

        Called again after a crash: not where it came to its end.

        Raises:
            ActionFailed: it may not be done any more.
        """

    def derive(self, cluster: Cluster, data: Data) -> Sequence[ProposedAction]:
        """Return the actions on nodes that carry out the decision."""
        return ()

    def complete(self, cluster: Cluster, data: Data) -> None:
        """Do what is left when the node actions have ended, whatever came of them. May be called twice."""

    # What they share.

    @property
    def uuid(self) -> str:
        return str(self.input_parameters["resource_id"])

    @property
    def gone(self) -> str:
        return f"Cluster {self.uuid} not found"

    def find(self) -> Cluster | None:
        """Return the cluster as it is now, unless it was deleted: one query each time."""
        return Cluster.objects.present().select_related("profile").filter(uuid=self.uuid).first()

    def cluster(self) -> Cluster:
        """Return the cluster as it is now. Raises: `ActionFailed`, where it was deleted."""
        found = self.find()
        if found is None:
            raise ActionFailed(self.gone)
        return found

    def pre_condition(self) -> None:
        if self.find() is None:
            raise ActionSkipException(self.gone)

    def plan(self) -> Sequence[ProposedAction]:
        """Decide now what is to be done when a person starts the plan, and return the node actions it will take.

        Only the context's data is written. Policies that act on the cloud are asked when it is executed.

        Raises:
            ActionFailed: it may not be done, and why.
        """
        cluster = self.cluster()
        return self.derive(cluster, self.decision(cluster, deciding_only=True))

    def execute(self) -> Outcome:
        cluster = self.cluster()
        if holder := take_lock(cluster, self.context.action_uuid):
            return Outcome(Answer.RETRY, refusal(cluster, holder))
        data = self.decision(cluster)
        planned = self.context.derived
        self.begin(cluster, data)
        derived = () if planned else self.derive(cluster, data)
        return Outcome(Answer.WAIT, derived=derived) if planned or derived else self.go_on()

    def decision(self, cluster: Cluster, *, deciding_only: bool = False) -> Data:
        """Return what is to be done, from the data of an earlier run or decided now, and saved.

        Raises:
            ActionFailed: a policy refuses, or it may not be done.
        """
        data = ask_policies(self, When.BEFORE, cluster, self.context.data, deciding_only=True)
        if not data.get(DECIDED):
            self.decide(cluster, data)
            data[DECIDED] = True
        self.context.save_data(data)
        if not deciding_only:
            # Only now: what is refused shall leave no trace in the cloud.
            data = ask_policies(self, When.BEFORE, cluster, data, left_out=self.left_out)
            self.context.save_data(data)
        return data

    @transaction.atomic
    def begin(self, cluster: Cluster, data: Data) -> None:
        """Write that it is at work, unless that is written already."""
        if data.get("begun"):
            return
        cluster.begin(self.at_work, f"{self.description} in progress")
        self.apply(cluster, data)
        self.save(cluster)
        self.context.save_data({**data, "begun": True})

    @property
    def left_out(self) -> set[str]:
        """What people had left out of the plan before it began: the targets of its SKIPPED node actions."""
        return {str(one.target) for one in self.context.derived if one.state == Action.State.SKIPPED}

    def go_on(self) -> Outcome:
        cluster = self.find()
        if cluster is None:
            return Outcome(Answer.OK)
        data = dict(self.context.data)
        self.complete(cluster, data)
        failed = [one for one in self.context.derived if one.state in (Action.State.FAILED, Action.State.CANCELLED)]
        if not failed:
            self.context.save_data(ask_policies(self, When.AFTER, cluster, data))
        self.settle()
        return Outcome(Answer.OK)

    def settle(self) -> None:
        """Have the cluster's status say how its nodes are, if it still says that this action is at work."""
        cluster = self.find()
        if cluster is not None and cluster.status == self.at_work:
            settle(cluster, f"{self.name}: {{}}")
            self.save(cluster)

    def save(self, cluster: Cluster) -> None:
        try:
            cluster.save_state()
        except ConcurrentTransition as problem:
            raise ActionFailed(f"Cluster {self.uuid} is no longer as it was read") from problem

    def post_condition(self) -> None:
        """A cluster that still reads as at work is left as its nodes are."""
        if self.context.data.get("begun"):
            self.settle()

    def abort(self) -> bool:
        """What was derived has ended, and stays as it is."""
        if self.context.data.get("begun"):
            self.settle()
        return True

    def recover(self) -> Recovery:
        return Recovery.AGAIN


def node_action(
    action_type: str, node: Node, inputs: Mapping[str, Any] = MappingProxyType({}), **options: Any
) -> ProposedAction:
    """Return an action on a node to be."""
    acted_on = {"resource_id": str(node.uuid), "resource_name": node.name}
    return ProposedAction(action_type, {**acted_on, **inputs}, **options)
