"""Change the properties of a node, and its server according to another profile."""

from functools import partial
from typing import Any

from actions.types.base import DONE, Outcome, Recovery, explain
from actions.types.nodes.node_check import find_problem
from actions.types.nodes.nodes import (
    METADATA,
    NEW_NAME,
    NEW_PROFILE,
    NodeAction,
    delete_server_of,
    schema_of,
    written_together,
)
from actions.types.nodes.server_changes import Way, change_server, find_profile, way_to
from cluster.drivers.base import CloudBusy, CloudError, ServerNotFound, cloud
from cluster.models import Node, Profile
from cluster.simulated import simulated_cloud

Status = Node.Status
NOTHING_TO_DO = "No property to update."
PROPERTIES = ("name", "role", "metadata", "tainted")
# What is done to the server that a node has, in Nova's words.
OPERATIONS = {Way.RESIZE: "resize", Way.REBUILD: "rebuild", Way.RECREATE: "delete"}
UPDATE = "update"
"""The key in an action's data of the change of the server: its kind, and the next generation."""


class NodeUpdate(NodeAction):
    """Updates a node. The way to the new profile is decided and saved when the node becomes UPDATING.

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
        if not changes and profile in (None, node.profile) and not self.is_at_work(node):
            return DONE if UPDATE in self.context.data else self.tell_nothing()
        if profile in (None, node.profile) and not self.is_at_work(node):
            return self.write(node, None)
        way = self.decided(node, profile)
        if way is None:
            return self.write(node, profile)
        self.carry_out(node, profile or node.profile, way)
        return self.write(node, profile)

    def tell_nothing(self) -> Outcome:
        self.context.outputs["reason"] = NOTHING_TO_DO
        return DONE

    def new_profile(self) -> Profile | None:
        """Return the requested new profile, if there is one. Raises: `ActionFailed`, if it does not exist."""
        uuid = self.input_parameters.get("new_profile_id")
        if uuid and (model := simulated_cloud()):
            return model.members.read_once(("profile", uuid), partial(find_profile, uuid))
        return find_profile(uuid) if uuid else None

    def changes_of(self, node: Node) -> dict[str, Any]:
        given = {name: self.input_parameters[name] for name in PROPERTIES if name in self.input_parameters}
        return {name: value for name, value in given.items() if getattr(node, name) != value}

    def is_at_work(self, node: Node) -> bool:
        return UPDATE in self.context.data and node.status == Status.UPDATING

    def decided(self, node: Node, profile: Profile | None) -> Way | None:
        """Return the change of the server, from an earlier run or decided and saved now, or None if it stays."""
        if self.is_at_work(node):
            return Way(self.context.data[UPDATE]["way"])
        way = way_to(node.profile.spec, profile.spec) if profile and is_there(node) else None
        if way:
            self.begin_update(node, way)
        return way

    def begin_update(self, node: Node, way: Way) -> None:
        with written_together():
            self.change(node, node.begin_update, operation=OPERATIONS[way], server=node.physical_id)
            self.context.save_data({**self.context.data, UPDATE: {"way": way, "generation": node.generation + 1}})

    def carry_out(self, node: Node, profile: Profile, way: Way) -> None:
        try:
            change_server(self, node, profile, way, self.context.data[UPDATE]["generation"])
        except CloudBusy:
            raise
        except CloudError as problem:
            self.leave(explain(problem))
            raise
        self.context.outputs["operation"] = way

    def write(self, node: Node, profile: Profile | None) -> Outcome:
        """Write the result: the properties, the profile, and the status by the server."""
        for name, value in self.changes_of(node).items():
            setattr(node, name, value)
        node.profile = profile or node.profile
        if node.status != Status.UPDATING:
            self.change(node, lambda: None)
        elif problem := find_problem(node):
            self.change(node, node.fail, problem)
        else:
            created = node.physical_id if self.is_recreated else None
            self.change(node, node.finish_update, "Update succeeded", operation="create", server=created)
        return DONE

    @property
    def is_recreated(self) -> bool:
        return self.context.data.get(UPDATE, {}).get("way") == Way.RECREATE

    def leave(self, reason: str) -> None:
        """Set the status of a node whose update was interrupted from its server."""
        node = self.find()
        if node is None or node.status != Status.UPDATING or not self.is_in_charge(node):
            return
        if find_problem(node):
            self.change(node, node.fail, reason)
        else:
            self.change(node, node.finish_update, f"Update failed: {reason}")

    def post_condition(self) -> None:
        """Set the status of a node that was not updated, for example after too many retries."""
        self.leave("Its server was not changed")
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
        self.leave("It was interrupted")
        self.settle_cluster()
        return True

    def recover(self) -> Recovery:
        return Recovery.AGAIN


def is_there(node: Node) -> bool:
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
