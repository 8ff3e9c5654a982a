"""Replace the server, or the stack, of a resource."""

from contextlib import suppress

from actions.types.base import ActionFailed, ActionSkipException, Outcome
from actions.types.nodes.nodes import schema_of, written_together
from actions.types.stacks import standalone
from actions.types.stacks.nested import begin_stack, end_stack, former_stacks, remove_empty
from actions.types.stacks.resources import ResourceAction, change_metadata, delete_made, delete_server
from actions.types.stacks.status import write
from actions.types.stacks.steps import CHANGE
from cluster.drivers.base import NoValidHost, ServerNotFound, cloud
from cluster.models import StackResource, StackStatus
from cluster.models.stacks import IN_PROGRESS, Verb
from cluster.simulated import foreseen_cloud
from cluster.stacks.servers import is_changeable, parts_differing

CLEARED = "cleared"
"""The key in an action's data that says that no server of an earlier replacement, which failed, is left."""
IN_PLACE = "in_place"
"""The key in an action's data, and in its outputs, that says that the server is rebuilt where it is."""

# The statuses in which both clouds rebuild a server.
REBUILDABLE = ("ACTIVE", "SHUTOFF", "ERROR")


class ReplaceResource(ResourceAction):
    """First the new is made, then the resource names it, then the former goes: so it is never without.

    It keeps its name and its row. A marked resource whose replacement fails stays marked. Where no action on the
    stack derived it, it takes locks, and decides by itself: `alone` has the order.

    Where no host has capacity for a new server, but the former one has the same flavor and zone, that is rebuilt on
    its host: it needs no capacity beside its own, and stays where it is if that fails.
    """

    name = "replace_resource"
    description = "Replacing a resource of a stack"
    schema = schema_of(expected_status={"type": "string", "enum": StackStatus.values})
    verb = Verb.UPDATE
    takes_locks = True

    def pre_condition(self) -> None:
        resource = self.find()
        if resource is None:
            raise ActionSkipException(self.gone)
        if self.status_before is not None:
            return
        if CHANGE in self.context.data and self.is_done(resource):
            raise ActionSkipException(f"Resource {self.uuid} was replaced already")
        expected = self.input_parameters.get("expected_status")
        if expected and resource.status != expected:
            raise ActionSkipException(f"Resource {self.uuid} is {resource.status}, and no longer {expected}")

    def is_done(self, resource: StackResource) -> bool:
        """Return whether the replacement exists, and the former one is gone."""
        ahead = resource.generation - self.change.generation
        return ahead > 0 or (ahead == 0 and resource.former_physical_id is None)

    def execute(self) -> Outcome:
        if not self.context.is_derived and (held := standalone.take_up(self)):
            return held
        return super().execute()

    def begin_within(self, resource: StackResource) -> None:
        if self.change.nested:
            begin_stack(self.change.nested, Verb.CREATE)

    def act(self, resource: StackResource) -> Outcome:
        change = self.change
        if resource.generation < change.generation:
            if outcome := self.next_step(change.steps, change.pause):
                return outcome
            self.take_place(resource)
        if resource.former_physical_id:
            delete_server(resource.former_physical_id)  # It is none, where a stack was within.
        if outcome := self.next_step([*change.steps, change.clearing]):
            return outcome
        if left := remove_empty(former_stacks(resource)):
            raise ActionFailed(left)
        resource.former_physical_id = None
        return self.finish(resource)

    def take_place(self, resource: StackResource) -> None:
        """Make the new one, and have the resource name it. Raises: `CloudError`."""
        change = self.change
        self.clear_before(resource)
        if change.nested:
            end_stack(change.nested, self.left_out)
            made = change.nested
        else:
            made = self.make_or_rebuild(resource)
        records = [] if change.nested else self.operation("rebuild" if self.is_in_place else "create", made)
        if not resource.is_nesting and not self.is_in_place:
            records += self.operation("delete", resource.physical_id)
        resource.receive(made, change.generation)
        resource.type = self.wanted(resource)["type"]
        write(resource, records)

    @property
    def is_in_place(self) -> bool:
        return bool(self.context.data.get(IN_PLACE))

    def make_or_rebuild(self, resource: StackResource) -> str:
        """Create a new server, or rebuild the former one in place, and return its UUID. Raises: `CloudError`."""
        if not self.is_in_place:
            can_rebuild = self.can_rebuild(resource)
            try:
                return self.make_server(resource, may_wait=not can_rebuild)
            except NoValidHost:
                if not can_rebuild:
                    raise
            # Saved before the first step: from then on no other server can be created instead.
            self.context.save_data({**self.context.data, IN_PLACE: True})
        server, wanted = str(resource.physical_id), self.wanted(resource)["properties"]
        cloud().rebuild_server(server, wanted["image"], self.context.checkpoint)
        change_metadata(server, resource.properties, wanted)
        self.context.outputs[IN_PLACE] = True
        return server

    def can_rebuild(self, resource: StackResource) -> bool:
        """Return whether the former server can be rebuilt in place with the result that a new one would have."""
        wanted = self.wanted(resource)
        if resource.is_nesting or wanted["type"] != resource.type or resource.physical_id is None:
            return False
        differing = parts_differing(resource.properties, wanted["properties"])
        if {"flavor", "availability_zone"}.intersection(differing) or not is_changeable(
            differing, wanted["properties"]
        ):
            return False
        with suppress(ServerNotFound):
            found = cloud().find_server(resource.physical_id)
            return found.has_run and found.task_state is None and found.status in REBUILDABLE
        return False

    def clear_before(self, resource: StackResource) -> None:
        """Delete what earlier work left that failed, before nobody knows of it any more."""
        delete_server(resource.former_physical_id)
        if resource.physical_id is None:
            delete_made(resource, resource.generation)
        if self.may_have_left and not self.context.data.get(CLEARED):
            # It would be taken for the new one, whatever it is.
            delete_made(resource, self.change.generation)
            self.context.save_data({**self.context.data, CLEARED: True})

    def fail(self, reason: str) -> None:
        with written_together():
            self.keep_mark(reason)

    def keep_mark(self, reason: str) -> None:
        """Keep the mark of a resource that was not replaced."""
        resource = self.find()
        if resource is None or self.status_before is None or resource.status not in IN_PROGRESS:
            return
        super().fail(reason)
        if self.status_before == StackStatus.CHECK_FAILED and resource.generation < self.change.generation:
            failed = self.resource()
            failed.mark_unhealthy(f"It was not replaced: {reason}")
            write(failed)

    def post_condition(self) -> None:
        super().post_condition()
        if not self.context.is_derived and foreseen_cloud() is None and (resource := self.find()):
            standalone.settle_above(resource)

    def abort(self) -> bool:
        """A new server goes again; where it took the place already, it is gone on with to the end."""
        resource = self.find()
        if resource is None or resource.status not in IN_PROGRESS:
            return False
        if not self.change.nested and resource.generation >= self.change.generation:
            self.act(resource)
            return False
        if self.is_in_place:
            cloud().reconcile(str(resource.physical_id))
        elif not self.change.nested:
            delete_made(resource, self.change.generation)
        return super().abort()
