"""The part of `OpenStackCloud` for servers, through Nova."""

import time
from abc import ABC
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from openstack import exceptions as sdk
from openstack.compute.v2.server import Server as ServerResource
from openstack.connection import Connection

from cluster.drivers.base import (
    Checkpoint,
    Cloud,
    CloudBusy,
    CloudServer,
    CloudUnavailable,
    OperationFailed,
    OperationOutstanding,
    OperationRefused,
    ServerNotFound,
    proceed,
)
from cluster.drivers.openstack.access import Access
from cluster.drivers.openstack.items import has_no_host, keeps_owner, server_item
from cluster.drivers.openstack.operations import (
    find_reason,
    is_marked,
    judge_failure,
    marked,
    wait_for_begin,
    wait_until,
)
from cluster.models import Server, Trust
from cluster.synchronization.mirroring import record_server, record_server_gone

UNCONFIRMED = "VERIFY_RESIZE"
# Seconds between checks of the nova-compute service that a server leaves.
SERVICE_INTERVAL = 30
# The status of a server that found no host, for lack of capacity.
WAITING = "PENDING"
# What a server is in that has never run, if it has not.
UNBUILT = {"BUILD", "ERROR"}
# What Nova shows while a server is on its way, also between two of its task states.
MOVING = {"MIGRATING", "RESIZE", "REVERT_RESIZE"}
# Evacuations are requested in this microversion: from 2.95 on, Nova leaves every evacuated server stopped.
EVACUATION = "2.56"
# The statuses of a migration of this type that has ended.
ENDED_EVACUATION = {"done", "completed", "failed", "error", "cancelled"}


class OpenStackServers(Cloud, ABC):
    access: Access

    def find_server(self, server: str) -> CloudServer:
        return self.describe(self.look(server, self.access.read))

    def look(self, server: str, ask: Callable[..., Any] | None = None) -> Any:
        """Read a server once, or with ``ask`` another way. Raises: `ServerNotFound`."""
        try:
            return (ask or self.access.ask)(lambda cloud: cloud.compute.get_server(server), ServerNotFound(server))
        except ServerNotFound:
            record_server_gone(server)
            raise

    def describe(self, found: Any) -> CloudServer:
        waits = (
            has_no_host(found)
            and keeps_owner(found, self.access.project, self.access.user, lambda one: find_trust_of(one) is not None)
            and not Server.objects.given_up().filter(uuid=found.id).exists()
        )
        record_server(server_item(found, waits))
        status = WAITING if waits else found.status
        has_run = bool(found.launched_at) or found.status not in UNBUILT
        return CloudServer(
            found.id, found.name, status, found.task_state, found.compute_host, flavor_of(found), has_run
        )

    # Operations.

    def live_migrate(self, server: str, destination: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        self.move(
            server,
            destination,
            lambda cloud: cloud.compute.live_migrate_server(server, host=destination, block_migration="auto"),
            checkpoint,
        )

    def cold_migrate(self, server: str, destination: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        self.move(
            server, destination, lambda cloud: cloud.compute.migrate_server(server, host=destination), checkpoint
        )

    def move(
        self, server: str, destination: str | None, begin: Callable[[Connection], Any], checkpoint: Checkpoint
    ) -> None:
        before = self.find_free(server)
        after = self.carry_out(before, begin, f"Migrating instance {server}", checkpoint, self.watch(before))
        if after.host == before.host:
            raise self.failed(f"Instance {server} is still on {after.host} after its migration", server)
        if destination not in {None, after.host}:
            raise self.failed(f"Instance {server} went to {after.host}, not to {destination}", server)
        self.require_status(after, before.status)

    def evacuate(self, server: str, destination: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        """Nova itself refuses an evacuation from a host whose compute service is up."""
        before, what = self.find_free(server), f"Evacuating instance {server}"
        begin = partial(request_evacuation, server=server, destination=destination)
        self.carry_out(before, begin, what, checkpoint, is_over=self.is_evacuation_over)
        # Nova may have changed the host after the last reading of the server, and before that of the evacuation.
        after = self.find_server(server)
        if after.host == before.host or after.status not in {"ACTIVE", "SHUTOFF"}:
            reason = find_reason(self.access, server)
            raise judge_failure(what, reason or f"it is on {after.host} in status {after.status}")

    def stop(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        before = self.find_free(server)
        what = f"Stopping instance {server}"
        self.require_status(
            self.carry_out(before, lambda cloud: cloud.compute.stop_server(server), what, checkpoint), "SHUTOFF"
        )

    def start(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        before = self.find_free(server)
        what = f"Starting instance {server}"
        self.require_status(
            self.carry_out(before, lambda cloud: cloud.compute.start_server(server), what, checkpoint), "ACTIVE"
        )

    def change_metadata(self, server: str, changed: Mapping[str, str], removed: Collection[str] = ()) -> None:
        present = set(self.look(server).metadata or {})
        if changed:
            set_entries = partial(set_metadata, server=server, entries=changed)
            self.access.ask(set_entries, ServerNotFound(server))
        if names := sorted(present.intersection(removed)):
            self.access.ask(lambda cloud: cloud.compute.delete_server_metadata(server, names), ServerNotFound(server))
        self.find_server(server)

    def resize(self, server: str, flavor: str, checkpoint: Checkpoint = proceed) -> None:
        before, wanted = self.find_free(server), self.find_flavor(flavor)
        after = self.carry_out(
            before,
            lambda cloud: cloud.compute.resize_server(server, wanted.flavor_id),
            f"Resizing instance {server}",
            checkpoint,
        )
        if after.flavor != wanted.name:
            raise self.failed(f"Instance {server} has flavor {after.flavor} after its resize", server)
        self.require_status(after, before.status)

    def abort_migration(self, server: str, checkpoint: Checkpoint = proceed) -> CloudServer:
        """Abort a live migration that this site began: request the abortion until the server is at rest."""
        if not is_marked(Server, server):
            return self.find_server(server)

        def look() -> Any:
            for migration in self.access.ask(lambda cloud: list(cloud.compute.server_migrations(server))):
                self.ask_abort(server, migration.id)
            return self.look(server)

        with marked(Server, server):
            found = wait_until(look, is_settled, f"Aborting the migration of instance {server}", checkpoint)
        return self.describe(found)

    def ask_abort(self, server: str, migration: str) -> None:
        """Nova refuses it as long as the migration has not begun to run, and when it is over."""
        try:
            self.access.ask(lambda cloud: cloud.compute.abort_server_migration(migration, server))
        except OperationRefused:
            return

    def reconcile(self, server: str, checkpoint: Checkpoint = proceed) -> CloudServer:
        """Nova goes on by itself: its end is waited for, and confirmed where it asks for that."""
        if not is_marked(Server, server):
            return self.find_server(server)
        with marked(Server, server):
            what = f"What was under way on instance {server}"
            self.settle(server, what, checkpoint, is_over=self.is_evacuation_over)
            return self.find_server(server)

    # Their steps.

    def find_free(self, server: str) -> CloudServer:
        """Raises: `OperationRefused` where an operation is under way."""
        found = self.find_server(server)
        require_no_task(found)
        return found

    def carry_out(
        self,
        before: CloudServer,
        begin: Callable[[Connection], Any],
        what: str,
        checkpoint: Checkpoint,
        watch: Checkpoint = proceed,
        is_over: Callable[[Any], bool] | None = None,
    ) -> CloudServer:
        """Begin an operation and wait for its end, for as long as ``watch`` raises nothing."""
        with marked(Server, before.uuid):
            self.begin(before, begin, what, checkpoint)
            return self.settle(before.uuid, what, checkpoint, watch, is_over)

    def watch(self, server: CloudServer) -> Checkpoint:
        """Return a checkpoint that checks at intervals whether the nova-compute service that a server leaves is up.

        It raises `OperationOutstanding` where it is down: Nova goes on with the migration when it is started again.
        """
        host, next_look = server.host or "", time.monotonic()

        def look() -> None:
            nonlocal next_look
            if time.monotonic() < next_look:
                return
            next_look = time.monotonic() + SERVICE_INTERVAL
            services = self.access.ask(lambda cloud: list(cloud.compute.services(binary="nova-compute", host=host)))
            if services and services[0].state != "up":
                raise OperationOutstanding(
                    f"Migrating instance {server.uuid} is no longer waited for: nova-compute service {host} is down"
                )

        return look

    def begin(
        self, before: CloudServer, begin: Callable[[Connection], Any], what: str, checkpoint: Checkpoint
    ) -> None:
        """Request an operation once; if the answer is lost, the server shows whether Nova began it."""

        def has_begun(found: Any) -> bool:
            now = (found.status, found.compute_host, flavor_of(found))
            return not is_settled(found) or now != (before.status, before.host, before.flavor)

        try:
            self.access.ask(begin, ServerNotFound(before.uuid))
        except CloudUnavailable as problem:
            wait_for_begin(lambda: self.look(before.uuid), has_begun, problem, what, checkpoint)

    def is_evacuation_over(self, server: Any) -> bool:
        """Return whether a server is at rest, also according to its last evacuation.

        Nova shows an evacuated server at rest before it changes its host.
        """
        if not is_settled(server):
            return False
        found = self.access.ask(
            lambda cloud: list(cloud.compute.migrations(server_id=server.id, migration_type="evacuation"))
        )
        last = max(found, key=lambda migration: (migration.created_at, migration.id), default=None)
        return last is None or last.status in ENDED_EVACUATION

    def settle(
        self,
        server: str,
        what: str,
        checkpoint: Checkpoint,
        watch: Checkpoint = proceed,
        is_over: Callable[[Any], bool] | None = None,
    ) -> CloudServer:
        """Wait until nothing is under way, confirming what has to be confirmed. Raises: `OperationFailed`."""

        def look() -> tuple[Any, bool]:
            found = self.look(server)
            over = (is_over or is_settled)(found)
            if not over:
                watch()
            return found, over

        found, _ = wait_until(look, lambda looked: looked[1], what, checkpoint)
        if found.status == UNCONFIRMED:
            self.confirm(server, what, checkpoint)
            found = wait_until(lambda: self.look(server), is_confirmed, what, checkpoint)
        return self.describe(found)

    def confirm(self, server: str, what: str, checkpoint: Checkpoint) -> None:
        """Confirm a resize, and repeat the request if its answer is lost.

        Nova refuses it where it has confirmed by itself, or is about to: an earlier request may have been accepted.
        """
        requests = 0

        def ask() -> None:
            nonlocal requests
            requests += 1
            try:
                self.access.ask(lambda cloud: cloud.compute.confirm_server_resize(server), ServerNotFound(server))
            except OperationRefused:
                if requests == 1 and self.look(server).status == UNCONFIRMED:
                    raise

        wait_until(ask, lambda _: True, what, checkpoint)

    def require_status(self, server: CloudServer, *statuses: str) -> None:
        if server.status not in statuses:
            raise self.failed(f"Instance {server.uuid} is in status {server.status}", server.uuid)

    def failed(self, what: str, server: str) -> OperationFailed:
        reason = find_reason(self.access, server)
        return OperationFailed(f"{what}: {reason}" if reason else what)


def find_trust_of(server: Any) -> Trust | None:
    """Return the trust of the owner of a server in its project: by it the site can create another in its place."""
    found: Trust | None = (
        Trust.objects.valid().filter(project_id=server.project_id, user_id=server.user_id or "").first()
    )
    return found


def flavor_of(server: Any) -> str | None:
    """Return the name of the flavor of a server."""
    return server.flavor.original_name or server.flavor.name or None


def require_no_task(server: CloudServer) -> None:
    if server.task_state:
        raise CloudBusy(f"Instance {server.uuid} is busy: {server.task_state}")


def is_settled(server: Any) -> bool:
    return server.task_state is None and server.status not in MOVING


def is_confirmed(server: Any) -> bool:
    return is_settled(server) and server.status != UNCONFIRMED


def request_evacuation(cloud: Connection, server: str, destination: str | None) -> None:
    """Request an evacuation, for which the scheduler checks the destination, or chooses one."""
    # The method of the proxy takes no microversion.
    body = {"evacuate": {"host": destination} if destination else {}}
    sdk.raise_from_response(cloud.compute.post(f"/servers/{server}/action", json=body, microversion=EVACUATION))


def set_metadata(cloud: Connection, server: str, entries: Mapping[str, str]) -> None:
    # The method of the proxy takes entries as keywords: one called "server" would be refused.
    ServerResource.existing(id=server).set_metadata(cloud.compute, metadata=dict(entries))
