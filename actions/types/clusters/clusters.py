"""The base class of actions on clusters.

An action on a cluster is executed in two parts. First it decides, by policies and inputs, and saves the decision as
its data. Then it sets the cluster's status, and derives actions on nodes. When these have ended, it continues, and
updates the status. After a crash, the next execution uses the saved decision.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from copy import deepcopy
from functools import partial
from typing import ClassVar
from uuid import UUID

from django.db import transaction

from actions.exclusions.matching import excluded_now
from actions.exclusions.rules import current_rules
from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.types import messages
from actions.types.base import (
    ActionFailed,
    ActionSkipException,
    ActionType,
    Answer,
    CannotBeForeseen,
    Data,
    Outcome,
    Recovery,
)
from actions.types.clusters.resizing import kind_of, name_of, placements_of
from actions.types.clusters.rules import apply_policies, settle_status
from actions.types.locking import Lockable, require_known, require_unlocked, take_locks
from actions.types.nodes.nodes import node_action, schema_of
from cluster.models import Cluster, Node
from cluster.policies.base import When
from cluster.policies.checking import DECIDED
from cluster.simulated import simulated_cloud
from cluster.simulated.stacks import SimulatedNodes
from watcher_site.state_machine import ConcurrentTransition

BEGUN = "begun"
"""The key in an action's data that is set once its beginning is written to the cluster's row."""
DECISION = (DECIDED, "creation", "deletion", "placement")
"""The keys in an action's data of the decision: the nodes to create or remove, and their placement."""


class ClusterAction(ActionType, ABC):
    """An action on one cluster, ``resource_id``. Its ``resource_name`` is for users."""

    schema = schema_of()
    takes_locks = True
    inherits_foresight = True
    status_while_running: ClassVar[Cluster.Status | None] = None
    """The status of the cluster while the action runs; None keeps the status."""
    decides_once: ClassVar[bool] = False
    """Whether the action keeps its decision in a plan that continues its plan, instead of deciding again."""

    # Overridden by subclasses.

    def prepare(self, cluster: Cluster, data: Data) -> None:
        """Add the values that the policies need to the data, unless it contains them.

        Raises:
            ActionFailed: the operation is not allowed.
        """

    @abstractmethod
    def decide(self, cluster: Cluster, data: Data) -> None:
        """Complete the decision of the policies in the data.

        Raises:
            ActionFailed: the operation is not allowed.
        """

    def require_fit(self, cluster: Cluster, data: Data) -> None:
        """Check that the decision, which may be as old as the plan, matches the current cluster.

        Raises:
            ActionFailed: it does not match; the message gives the reason.
        """

    def lock_related_rows(self) -> None:
        """Lock other rows that must not change while `apply` writes, and that precede clusters in the lock order.

        Raises:
            ActionFailed: a row was deleted.
        """

    def apply(self, cluster: Cluster, data: Data) -> None:
        """Write the changes at the beginning, in one transaction with the cluster's row.

        The caller has locked that row, and saves it. After a crash, the method is called again, unless its transaction
        was committed.

        Raises:
            ActionFailed: the operation is no longer allowed.
        """

    def derive(self, cluster: Cluster, data: Data) -> Sequence[ProposedAction]:
        """Return the actions on nodes that implement the decision."""
        return ()

    def complete(self, cluster: Cluster, data: Data) -> None:
        """Complete the action when the node actions have ended, with any result. May be called twice."""

    def fit_size(self, cluster: Cluster, data: Data) -> None:
        """Set the desired capacity to the number of nodes that the cluster gets after actions on nodes were skipped.

        Called in one transaction with the cluster's row locked; the caller saves it. May be called twice.
        """

    # Shared by all subclasses.

    @property
    def uuid(self) -> str:
        return str(self.input_parameters["resource_id"])

    @property
    def not_found_message(self) -> str:
        return messages.CLUSTER_NOT_FOUND.fill(cluster=self.uuid)

    def find(self, *, lock: bool = False) -> Cluster | None:
        """Return the current row of the cluster, optionally locked, or None if it was deleted, with one query."""
        clusters = Cluster.objects.present().select_related("profile").filter(uuid=self.uuid)
        return (clusters.select_for_update(no_key=True, of=("self",)) if lock else clusters).first()

    def cluster(self, *, lock: bool = False) -> Cluster:
        """Return the cluster, as `find`. Raises: `ActionFailed` if it was deleted."""
        cluster = self.find(lock=lock)
        if cluster is None:
            raise ActionFailed(self.not_found_message)
        return cluster

    @classmethod
    def data_anew(cls, proposed: Data, kept: Data) -> Data:
        if not (cls.decides_once and kept.get(BEGUN)):
            return proposed
        return {name: value for name, value in kept.items() if name in DECISION}

    def pre_condition(self) -> None:
        if self.find() is None:
            raise ActionSkipException(self.not_found_message)

    def plan(self) -> Sequence[ProposedAction]:
        """Decide now, before a user starts the plan, and return the node actions that the action will derive.

        Only the context's data is written. Policies that change the cloud are applied when the action is executed.

        Raises:
            ActionFailed: the operation is not allowed; the message gives the reason.
        """
        cluster = self.cluster()
        return self.derive(cluster, self.decision(cluster))

    def execute(self) -> Outcome:
        if conflict := self.lock(self.cluster()):
            return conflict
        cluster = self.cluster()  # Before the lock, another action might have changed it.
        data = self.decision(cluster)
        planned = self.context.derived
        if not data.get(BEGUN):
            self.require_fit(cluster, data)
            self.begin(apply_policies(self, When.BEFORE, cluster, data, left_out=self.left_out))
        derived = () if planned else self.derive(cluster, data)
        delay = data.get("deletion", {}).get("grace_period", 0)
        return Outcome(Answer.WAIT, derived=derived, delay=delay) if planned or derived else self.go_on()

    def foresee(self) -> Outcome:
        """Return the actions that `execute` would derive, given the current tables.

        Policies that act on the cloud are not applied. Raises: `ActionFailed`, `CannotBeForeseen`.
        """
        cluster, model = self.cluster(), simulated_cloud()
        if model is None:
            raise CannotBeForeseen(messages.WITHOUT_MODEL.text)
        require_known(model, cluster)
        require_unlocked(model, self.context.action_uuid, self.locks(cluster))
        data = self.decision(cluster)
        planned = self.context.derived
        if not data.get(BEGUN):
            self.require_fit(cluster, data)
            apply_policies(self, When.BEFORE, cluster, data, deciding_only=True, left_out=self.left_out)
        model.members.changed.add(cluster.uuid)
        derived = self.derive_all(cluster, data, {str(action.target) for action in planned})
        foresee_new(model.members, cluster, data)
        model.members.load(str(action.input_parameters["resource_id"]) for action in derived)
        return Outcome(Answer.WAIT, derived=derived) if planned or derived else Outcome(Answer.OK)

    def derive_all(self, cluster: Cluster, data: Data, planned: Collection[str]) -> Sequence[ProposedAction]:
        """Return all actions on nodes that it would derive, or none if the plan contains some already.

        Args:
            planned: the UUIDs of the nodes of the planned actions.

        Raises:
            CannotBeForeseen: it would derive further actions that cannot be predicted.
        """
        return () if planned else self.derive(cluster, data)

    def locks(self, cluster: Cluster) -> list[tuple[Lockable, bool]]:
        """Return the locks that `lock` takes, as pairs of the object and whether the lock is exclusive."""
        return [(cluster, True)]

    def lock(self, cluster: Cluster) -> Outcome | None:
        """Take an exclusive lock on the cluster; return a RETRY if another action holds a lock on it."""
        return take_locks(self.context.action_uuid, self.locks(cluster))

    def decision(self, cluster: Cluster) -> Data:
        """Return the decision, from the data of an earlier run or made and saved now.

        Deciding policies are applied first, so that policies that change the cloud find a complete decision, and are
        applied only if it is possible. Policies that are added later do not change a decision.

        Raises:
            ActionFailed: a policy refuses, or the operation is not allowed.
        """
        data = deepcopy(self.context.data)
        if data.get(DECIDED):
            return data
        self.prepare(cluster, data)
        excluded = partial(self.find_excluded, cluster)
        data = apply_policies(self, When.BEFORE, cluster, data, deciding_only=True, excluded=excluded)
        self.decide(cluster, data)
        data[DECIDED] = True
        self.context.save_data(data)
        return data

    @transaction.atomic
    def begin(self, data: Data) -> None:
        """Write the beginning of the action. Raises: `ActionFailed` as `apply`, or if the cluster was deleted."""
        self.lock_related_rows()
        cluster = self.cluster(lock=True)
        if self.status_while_running:
            cluster.begin(self.status_while_running, messages.OPERATION_IN_PROGRESS.fill(description=self.description))
        self.apply(cluster, data)
        self.save(cluster)
        self.context.save_data({**data, BEGUN: True})

    @property
    def left_out(self) -> set[str]:
        """Return the UUIDs of the nodes that stay unchanged: the targets of its SKIPPED node actions.

        Before the action begins, the candidates that a rule in force excludes are added.
        """
        skipped = {str(action.target) for action in self.context.derived if action.state == Action.State.SKIPPED}
        deletion = {} if self.context.data.get(BEGUN) else self.context.data.get("deletion", {})
        candidates = set(deletion.get("candidates", ())) - skipped
        return skipped.union(self.find_excluded(self.cluster(), kind_of(deletion), candidates) if candidates else ())

    def find_excluded(self, cluster: Cluster, kind: str, uuids: Collection[str] | None = None) -> set[str]:
        """Return the UUIDs of the members, or of these nodes, for which rules in force exclude an action type."""
        if not current_rules().rules:
            return set()
        members = cluster.members() if uuids is None else cluster.members().filter(uuid__in=uuids)
        actions = [node_action(kind, node) for node in members]
        matches = excluded_now(actions)
        return {str(action.input_parameters["resource_id"]) for action in actions if action.uuid in matches}

    def go_on(self) -> Outcome:
        cluster = self.find()
        if cluster is None:
            return Outcome(Answer.OK)
        data = dict(self.context.data)
        self.complete(cluster, data)
        self.adjust()
        failed = any(action.state in (Action.State.FAILED, Action.State.CANCELLED) for action in self.context.derived)
        # Policies that act on the cloud are applied to the created nodes even after a failure.
        self.context.save_data(apply_policies(self, When.AFTER, cluster, data, acting_only=failed))
        self.settle()
        return Outcome(Answer.OK)

    @transaction.atomic
    def adjust(self) -> None:
        """Update the cluster's row if actions on nodes were skipped while this action waited."""
        if not any(action.state == Action.State.SKIPPED for action in self.context.derived):
            return
        if cluster := self.find(lock=True):
            self.fit_size(cluster, self.context.data)
            self.save(cluster)

    def settle(self) -> None:
        """Set the cluster's status from its nodes, if it still has the status of this action."""
        cluster = self.find()
        if cluster is not None and self.status_while_running and cluster.status == self.status_while_running:
            settle_status(cluster, self.name)
            self.save(cluster)

    def save(self, cluster: Cluster) -> None:
        try:
            cluster.save_state()
        except ConcurrentTransition as problem:
            raise ActionFailed(messages.CLUSTER_CHANGED.fill(cluster=self.uuid)) from problem

    def post_condition(self) -> None:
        """Set the status of the cluster from its nodes if it still has the status of this action."""
        if self.context.data.get(BEGUN) and simulated_cloud() is None:
            self.settle()

    def be_given_up(self, reason: str) -> None:
        if self.context.data.get(BEGUN):
            self.settle()

    def abort(self) -> bool:
        """Update the cluster. The derived actions have ended, and their results stay."""
        if self.context.data.get(BEGUN):
            self.settle()
        return True

    def recover(self) -> Recovery:
        return Recovery.AGAIN


def foresee_new(members: SimulatedNodes, cluster: Cluster, data: Data) -> None:
    """Add the nodes that an action on a cluster would create to the members in memory."""
    decided = data.get("creation", {}).get("nodes", [])
    placed = placements_of(decided, data)
    members.load(decided)
    for uuid in decided:
        if members.find(uuid) is None:
            columns = {"profile": cluster.profile, "cluster": cluster, "data": placed.get(uuid, {})}
            owner = {"project_id": cluster.project_id, "user_id": cluster.user_id, "trust": cluster.trust}
            members.add(Node(uuid=UUID(uuid), name=name_of(cluster, uuid), **columns, **owner))
