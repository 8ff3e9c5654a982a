"""Building of servers in the embedded cloud: choosing a node, and handling servers that find none."""

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from cluster.drivers.base import (
    Checkpoint,
    Cloud,
    CloudError,
    NoValidHost,
    OperationFailed,
    proceed,
)
from cluster.drivers.embedded.delay import pass_time
from cluster.drivers.ownership import OWNER, may_end, may_undo, require_attempt
from cluster.drivers.rules import require_free, require_never_run, require_node, require_status
from cluster.drivers.scheduler import choose_destination, find_host_of
from cluster.models import Server
from cluster.notifications import SELECTION, InstanceNotifications, SchedulerNotifications, tell_wait_ended
from cluster.signals import server_pending
from watcher_site.messages import cut
from watcher_site.outbox.kinds import UPDATE
from watcher_site.outbox.writing import announce

State = Server.State
SPAWNING = "spawning"
FAULT_CODE = 500


class EmbeddedBuilding(Cloud, ABC):
    """The part of `EmbeddedCloud` that starts a server for the first time."""

    @abstractmethod
    def lock(self, server: str) -> Server:
        """Raises: `ServerNotFound`."""

    @abstractmethod
    def finish(self, server: str, task_state: str, **changes: object) -> None:
        """Write the end of an operation, if it is still the one that began."""

    def build_server(self, server: str, checkpoint: Checkpoint = proceed, host: str | None = None) -> None:
        if nowhere := self.begin_build(server, host):
            raise nowhere
        try:
            pass_time(checkpoint)
        except OperationFailed as failure:
            self.fail_build(server, failure)
            raise
        after = {"launched_at": timezone.now(), "fault": None, "unhealthy_reason": None}
        self.finish(server, SPAWNING, state=State.ACTIVE, **after)

    @transaction.atomic
    def begin_build(self, server: str, host: str | None) -> NoValidHost | None:
        """Reserve capacity on a node for a server that never ran, or continue an earlier attempt.

        If there is no capacity, return the reason, which is stored under the same lock so that no other process builds
        the server meanwhile.
        """
        row = self.lock(server)
        if row.task_state != SPAWNING or not may_undo(row):
            require_free(row)
        require_never_run(row)
        if row.node_id is None:
            try:
                row.node = choose_destination(row, host, row.pinned_az or None)
            except NoValidHost as nowhere:
                bury(row, nowhere, State.PENDING if settings.USE_PENDING_STATE else State.ERROR)
                require_attempt()
                return nowhere
        before = row.state
        row.state, row.task_state, row.operation_owner = State.BUILDING, SPAWNING, OWNER.get()
        row.save_changes(["node", "state", "task_state", "operation_owner"])
        tell_wait_ended(row, before)
        require_attempt()
        return None

    def find_host(self, server: str) -> str | None:
        return find_host_of(server)

    @transaction.atomic
    def fail_build(self, server: str, problem: OperationFailed) -> None:
        """Write that a build failed, if it is still the one that began, on a server that has not run."""
        row = self.lock(server)
        if row.state != State.BUILDING or row.task_state != SPAWNING or not may_end(row):
            raise OperationFailed(f"Instance {server} was taken out of its operation {SPAWNING}")
        bury(row, problem, State.ERROR)

    @transaction.atomic
    def reset_state(self, server: str, state: str, *, reason: str | None = None, expected: str | None = None) -> None:
        """Set the state of a server, as Nova does, whatever operation is in progress.

        A server that is PENDING for lack of capacity has never run, and cannot be set to ACTIVE.
        """
        row = self.lock(server)
        require_status(row, expected)
        before = row.state
        if state == State.ACTIVE:
            require_node(row)
        row.state, row.task_state, row.operation_owner = State(state), None, ""
        row.destination, row.new_flavor = None, None
        if state == State.ACTIVE:
            row.fault, row.unhealthy_reason = None, None
        elif reason:
            row.fault = make_fault(reason)
        changed = ("state", "task_state", "operation_owner", "destination", "new_flavor", "fault", "unhealthy_reason")
        row.save_changes(changed)
        tell_wait_ended(row, before)
        require_attempt()


def bury(row: Server, problem: CloudError, state: State) -> None:
    """Store that a locked server could not be built, and why, without a node (Nova's ``_bury_in_cell0``)."""
    row.node, row.task_state, row.operation_owner = None, None, ""
    # Who is PENDING already, and finds no host again, stays what it is, and is no news.
    before, is_news = row.state, row.state != state
    row.state, row.fault = state, make_fault(str(problem))
    row.save_changes(["node", "state", "task_state", "operation_owner", "fault"])
    if is_news and state == State.PENDING:
        announce(SchedulerNotifications.name, SELECTION, [row.pk])
        announce(InstanceNotifications.name, [UPDATE], [row.pk], before)
        transaction.on_commit(partial(server_pending.send, sender=Server, server=str(row.uuid)))


def make_fault(reason: str) -> dict[str, Any]:
    """Return why a server could not be built, as Nova tells it."""
    return {"code": FAULT_CODE, "message": cut(reason), "created": timezone.now().isoformat(), "details": None}
