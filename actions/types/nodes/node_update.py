"""Change the properties of a node, and its server according to another profile."""

from functools import partial
from typing import Any

from actions.types import messages
from actions.types.base import DONE, Outcome, Recovery, explain
from actions.types.nodes.node_check import find_problem
from actions.types.nodes.nodes import (
    METADATA,
    NEW_NAME,
    NEW_PROFILE,
    NodeAction,
    atomic_unless_simulated,
    delete_server_of,
    schema_of,
)
from actions.types.nodes.server_changes import ServerChange, change_server, find_profile, find_server_change
from cluster.drivers.base import CloudBusy, CloudError, ServerNotFound, cloud
from cluster.models import Node, Profile
from cluster.simulated import simulated_cloud

Status = Node.Status
PROPERTIES = ("name", "role", "metadata", "tainted")
# Nova's names of the operations on the current server.
OPERATIONS = {ServerChange.RESIZE: "resize", ServerChange.REBUILD: "rebuild", ServerChange.RECREATE: "delete"}
UPDATE = "update"
"""The key in an action's data of the change of the server: its kind, and the next generation."""


class NodeUpdate(NodeAction):
    """Updates a node. The change of its server is decided and saved when the node becomes UPDATING.

    If the cloud refuses to change the server, the server stays as it is, and the node keeps its profile.
    """

    name = "NODE_UPDATE"
    description = "Updating a node"
    schema = schema_of(
        name=NEW_NAME,
        role={"type": "string", "maxLength": 255, "description": "The new role."},
        metadata=METADATA,
        tainted={"type": "boolean", "description": "Whether it is removed first when its cluster shrinks."},
        new_profile_id=NEW_PROFILE,
    )

    def pre_condition(self) -> None:
        self.node_to_act_on()

    def act(self) -> Outcome:
        node = self.node()
        profile, changes = self.new_profile(), self.changes_of(node)
        if not changes and profile in (None, node.profile) and not self.is_updating(node):
            return DONE if UPDATE in self.context.data else self.report_no_change()
        if profile in (None, node.profile) and not self.is_updating(node):
            return self.write(node, None)
        server_change = self.decide_server_change(node, profile)
        if server_change is None:
            return self.write(node, profile)
        self.carry_out(node, profile or node.profile, server_change)
        return self.write(node, profile)

    def report_no_change(self) -> Outcome:
        self.context.outputs["reason"] = messages.NO_PROPERTY_TO_UPDATE.text
        return DONE

    def new_profile(self) -> Profile | None:
        """Return the requested new profile, or None. Raises: `ActionFailed` if it does not exist."""
        uuid = self.input_parameters.get("new_profile_id")
        if uuid and (model := simulated_cloud()):
            return model.members.read_once(("profile", uuid), partial(find_profile, uuid))
        return find_profile(uuid) if uuid else None

    def changes_of(self, node: Node) -> dict[str, Any]:
        values = {name: self.input_parameters[name] for name in PROPERTIES if name in self.input_parameters}
        return {name: value for name, value in values.items() if getattr(node, name) != value}

    def is_updating(self, node: Node) -> bool:
        return UPDATE in self.context.data and node.status == Status.UPDATING

    def decide_server_change(self, node: Node, profile: Profile | None) -> ServerChange | None:
        """Return the change of the server, from an earlier run or decided and saved now, or None if it stays."""
        if self.is_updating(node):
            return ServerChange(self.context.data[UPDATE]["way"])
        server_change = (
            find_server_change(node.profile.spec, profile.spec) if profile and has_changeable_server(node) else None
        )
        if server_change:
            self.begin_update(node, server_change)
        return server_change

    def begin_update(self, node: Node, server_change: ServerChange) -> None:
        with atomic_unless_simulated():
            self.change(node, node.begin_update, operation=OPERATIONS[server_change], server=node.physical_id)
            self.context.save_data(
                {**self.context.data, UPDATE: {"way": server_change, "generation": node.generation + 1}}
            )

    def carry_out(self, node: Node, profile: Profile, server_change: ServerChange) -> None:
        try:
            change_server(self, node, profile, server_change, self.context.data[UPDATE]["generation"])
        except CloudBusy:
            raise
        except CloudError as problem:
            self.leave(explain(problem))
            raise
        self.context.outputs["operation"] = server_change

    def write(self, node: Node, profile: Profile | None) -> Outcome:
        """Write the result: the properties, the profile, and the status derived from the server."""
        for name, value in self.changes_of(node).items():
            setattr(node, name, value)
        node.profile = profile or node.profile
        if node.status != Status.UPDATING:
            self.change(node, lambda: None)
        elif problem := find_problem(node):
            self.change(node, node.fail, problem)
        else:
            created = node.physical_id if self.is_recreated else None
            self.change(node, node.finish_update, messages.UPDATE_SUCCEEDED.text, operation="create", server=created)
        return DONE

    @property
    def is_recreated(self) -> bool:
        return self.context.data.get(UPDATE, {}).get("way") == ServerChange.RECREATE

    def leave(self, reason: str) -> None:
        """Set the status of a node whose update was interrupted from its server."""
        node = self.find()
        if node is None or node.status != Status.UPDATING or not self.is_in_charge(node):
            return
        if find_problem(node):
            self.change(node, node.fail, reason)
        else:
            self.change(node, node.finish_update, messages.UPDATE_FAILED.fill(reason=reason))

    def post_condition(self) -> None:
        """Set the status of a node that was not updated, for example after too many retries."""
        self.leave(messages.NOT_CHANGED.text)
        self.settle_cluster()

    def be_given_up(self, reason: str) -> None:
        self.fail(Status.UPDATING, reason)
        self.settle_cluster()

    def abort(self) -> bool:
        """Delete the new server of an interrupted replacement; a server that was being changed stays."""
        node = self.find()
        if node is None or node.status != Status.UPDATING:
            return False
        if node.physical_id:
            cloud().reconcile(str(node.physical_id))
        else:
            delete_server_of(node)
        self.leave(messages.WAS_INTERRUPTED.text)
        self.settle_cluster()
        return True

    def recover(self) -> Recovery:
        return Recovery.AGAIN


def has_changeable_server(node: Node) -> bool:
    """Return whether a node has a server that can be changed.

    A missing server is created later, from the new profile.
    """
    if node.physical_id is None:
        return False
    try:
        cloud().find_server(str(node.physical_id))
    except ServerNotFound:
        return False
    return True
