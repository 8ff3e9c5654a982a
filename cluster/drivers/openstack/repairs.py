"""Reboots and rebuilds of servers in an OpenStack cloud, through Nova."""

from abc import ABC
from collections.abc import Callable
from typing import Any

from openstack.connection import Connection

from cluster.drivers.base import Checkpoint, CloudServer, OperationRefused, proceed
from cluster.drivers.openstack.failures import find_reason, judge_failure
from cluster.drivers.openstack.marks import is_marked
from cluster.drivers.openstack.servers import OpenStackServers, require_no_task
from cluster.models import Server
from cluster.synchronization.recording import record_server_well

RUNNING, STOPPED, BROKEN = "ACTIVE", "SHUTOFF", "ERROR"


class OpenStackRepairs(OpenStackServers, ABC):
    def reboot_server(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        """A guest that runs may end by itself. Nova reboots all others hard, or refuses to."""
        found, what = self.find_built(server), f"Rebooting instance {server}"
        kind = "SOFT" if found.status == RUNNING else "HARD"
        after = self.repair(found, "reboot", lambda cloud: cloud.compute.reboot_server(server, kind), what, checkpoint)
        self.require_success(after, what, RUNNING)

    def rebuild_server(self, server: str, image: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        found, what = self.find_built(server), f"Rebuilding instance {server}"
        wanted = image or image_of(found)
        if wanted is None:
            raise OperationRefused(f"Instance {server} boots from a volume: say from which image to rebuild it")
        after = self.repair(
            found, "rebuild", lambda cloud: cloud.compute.rebuild_server(server, wanted), what, checkpoint
        )
        self.require_success(after, what, RUNNING, STOPPED)
        record_server_well(server)

    def find_built(self, server: str) -> Any:
        """Raises: `OperationRefused` where there is nothing yet that could be repaired: Nova calls it in conflict."""
        found = self.look(server, self.access.read)
        if found.status == BROKEN and not found.launched_at:
            raise OperationRefused(f"Instance {server} was never built: it can only be created again")
        return found

    def repair(
        self, found: Any, verb: str, begin: Callable[[Connection], Any], what: str, checkpoint: Checkpoint
    ) -> CloudServer:
        """Begin a repair and wait for its end; or just wait, where an earlier attempt at this work began it.

        Nova's task states of a repair begin with its verb.
        """
        before = self.describe(found)
        if (before.task_state or "").startswith(verb) and is_marked(Server, before.uuid):
            return self.reconcile(before.uuid, checkpoint)
        require_no_task(before)
        return self.carry_out(before, begin, what, checkpoint)

    def require_success(self, server: CloudServer, what: str, *statuses: str) -> None:
        """A repair may fail and leave a server in the status that it was in: what Nova notes about it tells."""
        reason = find_reason(self.access, server.uuid)
        if reason or server.status not in statuses:
            raise judge_failure(what, reason or f"it is in status {server.status}")


def image_of(server: Any) -> str | None:
    return (server.image and server.image.id) or None
