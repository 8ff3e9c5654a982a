"""Change the properties of a cluster, and its nodes according to another profile."""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from django.utils.translation import gettext_noop as _

from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.types import messages
from actions.types.base import Answer, Outcome
from actions.types.clusters.clusters import ClusterAction
from actions.types.nodes.nodes import METADATA, NEW_NAME, NEW_PROFILE, node_action, schema_of
from actions.types.nodes.server_changes import find_profile
from cluster.models import Cluster, Node

PROPERTIES = ("name", "metadata", "timeout")
MAX_TIMEOUT = 2**31 - 1
SUCCESSFUL = {Action.State.SUCCEEDED, Action.State.SKIPPED}


class ClusterUpdate(ClusterAction):
    """Updates a cluster, and with a new profile all members, unless it is only for future members (``profile_only``).

    If a policy has decided on steps, the nodes of each step wait for those of the previous step, and for a pause.
    """

    name = "CLUSTER_UPDATE"
    description = _("Updating a cluster")
    schema = schema_of(
        name=NEW_NAME,
        metadata=METADATA,
        timeout={
            "type": "integer",
            "minimum": 0,
            "maximum": MAX_TIMEOUT,
            "description": "The timeout of actions on the cluster, in seconds. 0 is the site's default.",
        },
        new_profile_id=NEW_PROFILE,
        profile_only={
            "type": "boolean",
            "description": "True: the new profile applies to future nodes only, and the current ones are not changed.",
        },
    )
    status_while_running = Cluster.Status.UPDATING

    @property
    def new_profile(self) -> str | None:
        return self.input_parameters.get("new_profile_id")

    def decide(self, cluster: Cluster, data: dict[str, Any]) -> None:
        if not self.new_profile:
            return
        find_profile(self.new_profile)
        if not self.input_parameters.get("profile_only"):
            members = [str(uuid) for uuid in cluster.members().values_list("uuid", flat=True)]
            data.setdefault("update", {"pause_time": 0, "plan": [members] if members else []})

    def lock_related_rows(self) -> None:
        if self.new_profile:
            find_profile(self.new_profile, lock=True)

    def apply(self, cluster: Cluster, data: dict[str, Any]) -> None:
        for name in PROPERTIES:
            setattr(cluster, name, self.input_parameters.get(name, getattr(cluster, name)))
        if self.new_profile:
            cluster.profile = find_profile(self.new_profile)

    def plan(self) -> Sequence[ProposedAction]:
        """Return the actions of all steps, or of the first step if there are pauses; others are derived when due."""
        cluster = self.cluster()
        data = self.decision(cluster)
        planned: list[ProposedAction] = []
        before: list[UUID] = []
        # A planned action cannot begin a pause after its parents have ended: `go_on` derives it then.
        steps = steps_of(data)[: 1 if pause_of(data) else None]
        for step in steps:
            actions = self.updates(step, parents=before)
            planned += actions
            before = [action.uuid for action in actions] or before
        return planned

    def derive_all(self, cluster: Cluster, data: dict[str, Any], planned: Collection[str]) -> Sequence[ProposedAction]:
        """Return the actions of all steps; the actions of each step wait for those of the previous one."""
        derived: list[ProposedAction] = []
        before: list[UUID] = []
        for step in steps_of(data):
            if not set(step).intersection(planned):
                actions = self.updates(step, parents=before)
                derived += actions
                before = [action.uuid for action in actions] or before
        return derived

    def derive(self, cluster: Cluster, data: dict[str, Any]) -> Sequence[ProposedAction]:
        """Return the actions of the first step; `go_on` derives the others."""
        return next(filter(None, map(self.updates, steps_of(data))), [])

    def updates(self, step: Sequence[str], **options: Any) -> list[ProposedAction]:
        """Return the actions on the existing nodes of a step, in order."""
        nodes = {str(node.uuid): node for node in Node.objects.present().filter(uuid__in=step)}
        inputs = {"new_profile_id": self.new_profile}
        return [node_action("NODE_UPDATE", nodes[uuid], inputs, **options) for uuid in step if uuid in nodes]

    def go_on(self) -> Outcome:
        """Derive the actions of the next step, delayed by the pause. A failed step is the last one."""
        derived = self.context.derived
        done = {str(action.target) for action in derived}
        pause = pause_of(self.context.data)
        if all(action.state in SUCCESSFUL for action in derived):
            for step in steps_of(self.context.data):
                if not done.intersection(step) and (actions := self.updates(step, delay=pause)):
                    return Outcome(Answer.WAIT, messages.NEXT_NODES.fill(number=len(actions)), actions)
        return super().go_on()

    def complete(self, cluster: Cluster, data: dict[str, Any]) -> None:
        updated = [action for action in self.context.derived if action.state == Action.State.SUCCEEDED]
        self.context.outputs["nodes_updated"] = [str(action.target) for action in updated]


def steps_of(data: dict[str, Any]) -> list[list[str]]:
    """Return the UUIDs of the nodes of each step."""
    return [list(step) for step in data.get("update", {}).get("plan", [])]


def pause_of(data: dict[str, Any]) -> int:
    """Return the pause between two steps in seconds."""
    return int(data.get("update", {}).get("pause_time", 0))
