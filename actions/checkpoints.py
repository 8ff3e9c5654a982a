"""Where an action at work asks, as often as it likes, whether it may go on."""

import time
from math import inf

import structlog
from django.conf import settings
from django.db import connection

from actions.leases import Lease, Standing
from actions.models import Action
from actions.types.base import AbortRequested, LeaseLost, TimedOut
from watcher_site.worker import LOST_DATABASE

log = structlog.get_logger(__name__)


class Checkpoint:
    """Asks the table at most once per `settings.POLL_INTERVAL` seconds: what is over sooner costs it nothing.

    While the table does not answer the action goes on, as long as its plan can not have been given to another applier.
    """

    def __init__(self, action: Action, lease: Lease) -> None:
        self.action, self.lease = action, lease
        self.goes_forward = False
        """Whether what is at work can be aborted or take too long: other work stops for a lost lease alone."""
        self.deadline = inf
        self.note_seen()

    def note_seen(self) -> None:
        """The table was seen to be as this worker believes it."""
        self.last_seen = time.monotonic()
        self.next_look = self.last_seen + settings.POLL_INTERVAL

    def note_begun(self) -> None:
        """The action began while its plan was held."""
        self.note_seen()

    def __call__(self) -> None:
        """Raises: `LeaseLost`, `AbortRequested`, `TimedOut`, where the action may not go on."""
        if time.monotonic() >= self.next_look:
            self.look()
        if self.goes_forward and time.monotonic() > self.deadline:
            raise TimedOut

    def look(self) -> None:
        """Ask the table now, and stop what is to stop."""
        self.next_look = time.monotonic() + settings.POLL_INTERVAL
        try:
            standing = self.lease.look(self.action)
        except LOST_DATABASE as problem:
            return self.go_on_unseen(problem)
        self.note_seen()
        return self.judge(standing)

    def go_on_unseen(self, problem: BaseException) -> None:
        log.warning("checkpoint does not see the database", action=str(self.action.uuid), problem=str(problem))
        connection.close_if_unusable_or_obsolete()
        if time.monotonic() - self.last_seen > settings.SERVICE_DOWN_TIME:
            raise LeaseLost from problem

    def judge(self, standing: Standing | None) -> None:
        if standing is None or not standing.is_held or not self.is_ours(standing):
            raise LeaseLost
        if self.goes_forward and standing.is_being_cancelled:
            raise AbortRequested

    def is_ours(self, standing: Standing) -> bool:
        """Say whether the action is as this worker left it: another may have given it up, or begun it again."""
        known = self.action.values_read
        return (standing.state, standing.attempt) == (known["state"], known["attempt"])
