"""The part of `OpenStackCloud` for servers, through Nova."""

import time
from abc import ABC
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from openstack import exceptions as sdk
from openstack.compute.v2.server import Server as ServerResource
from openstack.connection import Connection

from cluster.drivers import openstack_messages as messages
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
from cluster.drivers.messages import SERVER_BUSY
from cluster.drivers.openstack.access import Access
from cluster.drivers.openstack.items import has_no_host, keeps_owner, server_item
from cluster.drivers.openstack.operations import (
    find_reason,
    is_marked,
    make_failure,
    marked,
    wait_for_begin,
    wait_until,
)
from cluster.models import Server, Trust
from cluster.synchronization.mirroring import record_server, record_server_gone

UNCONFIRMED = "VERIFY_RESIZE"
# Seconds between checks of the nova-compute service that a server leaves.
SERVICE_INTERVAL = 30
# The site's status of a server that found no host for lack of capacity.
WAITING = "PENDING"
# The statuses in which a server may never have run.
UNBUILT = {"BUILD", "ERROR"}
# Nova's statuses during a migration, also between two task states.
MOVING = {"MIGRATING", "RESIZE", "REVERT_RESIZE"}
# The microversion of evacuations: from 2.95, Nova leaves every evacuated server stopped.
EVACUATION = "2.56"
# The statuses of a migration of this type that has ended.
ENDED_EVACUATION = {"done", "completed", "failed", "error", "cancelled"}


class OpenStackServers(Cloud, ABC):
    access: Access

    def find_server(self, server: str) -> CloudServer:
        return self.describe(self.fetch_server(server, self.access.read))

    def fetch_server(self, server: str, send: Callable[..., Any] | None = None) -> Any:
        """Return a server of Nova. Raises: `ServerNotFound`.

        Args:
            send: the method of the access to use, by default the one that sends a request once.
        """
        try:
            return (send or self.access.send)(lambda cloud: cloud.compute.get_server(server), ServerNotFound(server))
        except ServerNotFound:
            record_server_gone(server)
            raise

    def describe(self, server: Any) -> CloudServer:
        waits = (
            has_no_host(server)
            and keeps_owner(server, self.access.project, self.access.user, lambda one: find_trust_of(one) is not None)
            and not Server.objects.given_up().filter(uuid=server.id).exists()
        )
        record_server(server_item(server, waits))
        status = WAITING if waits else server.status
        has_run = bool(server.launched_at) or server.status not in UNBUILT
        return CloudServer(
            server.id, server.name, status, server.task_state, server.compute_host, flavor_of(server), has_run
        )

    # Operations.

    def live_migrate(self, server: str, destination: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        self.migrate(
            server,
            destination,
            lambda cloud: cloud.compute.live_migrate_server(server, host=destination, block_migration="auto"),
            checkpoint,
        )

    def cold_migrate(self, server: str, destination: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        self.migrate(
            server, destination, lambda cloud: cloud.compute.migrate_server(server, host=destination), checkpoint
        )

    def migrate(
        self, server: str, destination: str | None, begin: Callable[[Connection], Any], checkpoint: Checkpoint
    ) -> None:
        before = self.find_free(server)
        after = self.run_operation(
            before,
            begin,
            messages.MIGRATING.fill(server=server),
            checkpoint,
            self.make_service_check(before),
        )
        if after.host == before.host:
            raise self.failed(messages.STILL_ON_HOST.fill(server=server, host=after.host), server)
        if destination not in {None, after.host}:
            problem = messages.ON_OTHER_HOST.fill(server=server, host=after.host, destination=destination)
            raise self.failed(problem, server)
        self.require_status(after, before.status)

    def evacuate(self, server: str, destination: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        """Evacuate a server. Nova itself refuses this if the compute service of the host is up."""
        before, operation = self.find_free(server), messages.EVACUATING.fill(server=server)
        begin = partial(request_evacuation, server=server, destination=destination)
        self.run_operation(before, begin, operation, checkpoint, is_done=self.is_evacuation_done)
        # Nova may have changed the host after the last reading of the server, and before that of the evacuation.
        after = self.find_server(server)
        if after.host == before.host or after.status not in {"ACTIVE", "SHUTOFF"}:
            reason = find_reason(self.access, server)
            raise make_failure(operation, reason or messages.IT_IS_ON_HOST.fill(host=after.host, status=after.status))

    def stop(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        before = self.find_free(server)
        operation = messages.STOPPING.fill(server=server)
        self.require_status(
            self.run_operation(before, lambda cloud: cloud.compute.stop_server(server), operation, checkpoint),
            "SHUTOFF",
        )

    def start(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        before = self.find_free(server)
        operation = messages.STARTING.fill(server=server)
        self.require_status(
            self.run_operation(before, lambda cloud: cloud.compute.start_server(server), operation, checkpoint),
            "ACTIVE",
        )

    def change_metadata(self, server: str, changed: Mapping[str, str], removed: Collection[str] = ()) -> None:
        present = set(self.fetch_server(server).metadata or {})
        if changed:
            set_entries = partial(set_metadata, server=server, entries=changed)
            self.access.send(set_entries, ServerNotFound(server))
        if names := sorted(present.intersection(removed)):
            self.access.send(lambda cloud: cloud.compute.delete_server_metadata(server, names), ServerNotFound(server))
        self.find_server(server)

    def resize(self, server: str, flavor: str, checkpoint: Checkpoint = proceed) -> None:
        before, new_flavor = self.find_free(server), self.find_flavor(flavor)
        after = self.run_operation(
            before,
            lambda cloud: cloud.compute.resize_server(server, new_flavor.flavor_id),
            messages.RESIZING.fill(server=server),
            checkpoint,
        )
        if after.flavor != new_flavor.name:
            raise self.failed(messages.OTHER_FLAVOR.fill(server=server, flavor=after.flavor), server)
        self.require_status(after, before.status)

    def abort_migration(self, server: str, checkpoint: Checkpoint = proceed) -> CloudServer:
        """Abort a live migration that the site began, by repeated requests until no operation is in progress."""
        if not is_marked(Server, server):
            return self.find_server(server)

        def look() -> Any:
            for migration in self.access.send(lambda cloud: list(cloud.compute.server_migrations(server))):
                self.request_abort(server, migration.id)
            return self.fetch_server(server)

        with marked(Server, server):
            details = wait_until(look, is_settled, messages.ABORTING_MIGRATION.fill(server=server), checkpoint)
        return self.describe(details)

    def request_abort(self, server: str, migration: str) -> None:
        """Request the abortion of a migration. Nova refuses it before the migration runs and after its end."""
        try:
            self.access.send(lambda cloud: cloud.compute.abort_server_migration(migration, server))
        except OperationRefused:
            return

    def reconcile(self, server: str, checkpoint: Checkpoint = proceed) -> CloudServer:
        """Wait until Nova has completed the operation, and confirm it if necessary."""
        if not is_marked(Server, server):
            return self.find_server(server)
        with marked(Server, server):
            operation = messages.SERVER_UNDER_WAY.fill(server=server)
            self.wait_for_end(server, operation, checkpoint, is_done=self.is_evacuation_done)
            return self.find_server(server)

    # Steps of operations.

    def find_free(self, server: str) -> CloudServer:
        """Return a server without an operation in progress. Raises: `CloudBusy`."""
        details = self.find_server(server)
        require_no_task(details)
        return details

    def run_operation(
        self,
        before: CloudServer,
        begin: Callable[[Connection], Any],
        operation: str,
        checkpoint: Checkpoint,
        check: Checkpoint = proceed,
        is_done: Callable[[Any], bool] | None = None,
    ) -> CloudServer:
        """Request an operation and wait for its end.

        Args:
            check: is called at each poll, and may end the wait by an exception.
        """
        with marked(Server, before.uuid):
            self.request_operation(before, begin, operation, checkpoint)
            return self.wait_for_end(before.uuid, operation, checkpoint, check, is_done)

    def make_service_check(self, server: CloudServer) -> Checkpoint:
        """Return a checkpoint that checks at intervals whether the nova-compute service of the server's host is up.

        It raises `OperationOutstanding` if the service is down: Nova continues the migration after its restart.
        """
        host, next_check = server.host or "", time.monotonic()

        def look() -> None:
            nonlocal next_check
            if time.monotonic() < next_check:
                return
            next_check = time.monotonic() + SERVICE_INTERVAL
            services = self.access.send(lambda cloud: list(cloud.compute.services(binary="nova-compute", host=host)))
            if services and services[0].state != "up":
                raise OperationOutstanding(messages.SERVICE_DOWN.fill(server=server.uuid, host=host))

        return look

    def request_operation(
        self, before: CloudServer, begin: Callable[[Connection], Any], operation: str, checkpoint: Checkpoint
    ) -> None:
        """Request an operation once. If the response is lost, the state of the server shows whether Nova began it."""

        def has_begun(server: Any) -> bool:
            now = (server.status, server.compute_host, flavor_of(server))
            return not is_settled(server) or now != (before.status, before.host, before.flavor)

        try:
            self.access.send(begin, ServerNotFound(before.uuid))
        except CloudUnavailable as problem:
            wait_for_begin(lambda: self.fetch_server(before.uuid), has_begun, problem, operation, checkpoint)

    def is_evacuation_done(self, server: Any) -> bool:
        """Return whether no operation on a server is in progress, also according to its last evacuation.

        Nova clears the task state of an evacuated server before it changes its host.
        """
        if not is_settled(server):
            return False
        migrations = self.access.send(
            lambda cloud: list(cloud.compute.migrations(server_id=server.id, migration_type="evacuation"))
        )
        last = max(migrations, key=lambda migration: (migration.created_at, migration.id), default=None)
        return last is None or last.status in ENDED_EVACUATION

    def wait_for_end(
        self,
        server: str,
        operation: str,
        checkpoint: Checkpoint,
        check: Checkpoint = proceed,
        is_done: Callable[[Any], bool] | None = None,
    ) -> CloudServer:
        """Wait until no operation is in progress, and confirm a resize if necessary. Raises: `OperationFailed`."""

        def look() -> tuple[Any, bool]:
            details = self.fetch_server(server)
            has_ended = (is_done or is_settled)(details)
            if not has_ended:
                check()
            return details, has_ended

        details, _ = wait_until(look, lambda answer: answer[1], operation, checkpoint)
        if details.status == UNCONFIRMED:
            self.confirm(server, operation, checkpoint)
            details = wait_until(lambda: self.fetch_server(server), is_confirmed, operation, checkpoint)
        return self.describe(details)

    def confirm(self, server: str, operation: str, checkpoint: Checkpoint) -> None:
        """Confirm a resize, and repeat the request if its response is lost.

        Nova refuses the request if it has accepted an earlier one, or has confirmed the resize by itself.
        """
        requests = 0

        def ask() -> None:
            nonlocal requests
            requests += 1
            try:
                self.access.send(lambda cloud: cloud.compute.confirm_server_resize(server), ServerNotFound(server))
            except OperationRefused:
                if requests == 1 and self.fetch_server(server).status == UNCONFIRMED:
                    raise

        wait_until(ask, lambda _: True, operation, checkpoint)

    def require_status(self, server: CloudServer, *statuses: str) -> None:
        if server.status not in statuses:
            raise self.failed(messages.IN_STATUS.fill(server=server.uuid, status=server.status), server.uuid)

    def failed(self, operation: str, server: str) -> OperationFailed:
        reason = find_reason(self.access, server)
        return OperationFailed(messages.OTHER_RESULT.fill(outcome=operation, reason=reason) if reason else operation)


def find_trust_of(server: Any) -> Trust | None:
    """Return the trust of a server's owner in its project, by which the site can create a replacement, or None."""
    trust: Trust | None = (
        Trust.objects.valid().filter(project_id=server.project_id, user_id=server.user_id or "").first()
    )
    return trust


def flavor_of(server: Any) -> str | None:
    """Return the name of the flavor of a server."""
    return server.flavor.original_name or server.flavor.name or None


def require_no_task(server: CloudServer) -> None:
    if server.task_state:
        raise CloudBusy(SERVER_BUSY.fill(server=server.uuid, task=server.task_state))


def is_settled(server: Any) -> bool:
    return server.task_state is None and server.status not in MOVING


def is_confirmed(server: Any) -> bool:
    return is_settled(server) and server.status != UNCONFIRMED


def request_evacuation(cloud: Connection, server: str, destination: str | None) -> None:
    """Request an evacuation. The scheduler checks the destination, or chooses one."""
    # The method of openstacksdk accepts no microversion.
    body = {"evacuate": {"host": destination} if destination else {}}
    sdk.raise_from_response(cloud.compute.post(f"/servers/{server}/action", json=body, microversion=EVACUATION))


def set_metadata(cloud: Connection, server: str, entries: Mapping[str, str]) -> None:
    # The method of openstacksdk accepts entries as keywords, and would refuse one called "server".
    ServerResource.existing(id=server).set_metadata(cloud.compute, metadata=dict(entries))
