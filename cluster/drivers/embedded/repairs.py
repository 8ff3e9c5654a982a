"""Reboots and rebuilds of servers in the embedded cloud."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping

from django.db import transaction

from cluster.drivers.base import Checkpoint, Cloud, proceed
from cluster.drivers.ownership import OWNER, may_undo, require_attempt
from cluster.drivers.rules import (
    merged,
    require_free,
    require_power,
    require_reboot,
    require_rebuild,
    state_after_rebuild,
)
from cluster.models import ComputeNode, Server

REBOOTING, REBUILDING = "rebooting", "rebuilding"


class EmbeddedRepairs(Cloud, ABC):
    """The part of `EmbeddedCloud` that repairs servers. There are no images here: any name is accepted."""

    @abstractmethod
    def lock(self, server: str) -> Server:
        """Raises: `ServerNotFound`."""

    @abstractmethod
    def work(self, server: str, checkpoint: Checkpoint) -> None:
        """Wait as long as the operation takes."""

    @abstractmethod
    def finish(self, server: str, task_state: str, **changes: object) -> None:
        """Write the end of an operation, if it is still the one that began."""

    def reboot_server(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        self.begin_repair(server, REBOOTING, require_reboot)
        self.work(server, checkpoint)
        self.finish(server, REBOOTING, state=Server.State.ACTIVE)

    def rebuild_server(self, server: str, image: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        row = self.begin_repair(server, REBUILDING, require_rebuild)
        self.work(server, checkpoint)
        after = {"state": state_after_rebuild(row), "image": image or row.image, "unhealthy_reason": None}
        self.finish(server, REBUILDING, **after)

    @transaction.atomic
    def change_metadata(self, server: str, changed: Mapping[str, str], removed: Collection[str] = ()) -> None:
        row = self.lock(server)
        row.metadata = merged(row.metadata, changed, removed)
        row.save_changes(["metadata"])
        require_attempt()

    @transaction.atomic
    def begin_repair(self, server: str, task_state: str, require: Callable[[Server], ComputeNode]) -> Server:
        """Take a server that is free, or that an earlier attempt at this work left in the same operation."""
        row = self.lock(server)
        if row.task_state != task_state or not may_undo(row):
            require_free(row)
        node = require(row)
        # Locked, so that it is not switched off meanwhile.
        require_power(ComputeNode.objects.select_for_update(no_key=True).get(pk=node.pk))
        row.task_state, row.operation_owner = task_state, OWNER.get()
        row.save_changes(["task_state", "operation_owner"])
        require_attempt()
        return row
