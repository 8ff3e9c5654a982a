"""Synchronize our tables with a cloud that they mirror: one reading at a time."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from cluster.drivers.base import CloudError, cloud
from cluster.models import Synchronization
from cluster.synchronization.cloud_contents import CloudContents
from cluster.synchronization.mirroring import MirrorReport, mirror
from cluster.synchronization.rows import UNFIT, describe_conflict
from watcher_site.monitoring.metrics import cloud_reading_seconds

log = structlog.get_logger(__name__)
# How often, in seconds, a long reading says that it goes on.
RENEWAL = 30


class Overtaken(CloudError):
    """The reading took so long without a sign of life that another began."""

    def __init__(self) -> None:
        super().__init__("The reading of the cloud was overtaken by another, and nothing of it was written")


def synchronize(age: timedelta = timedelta(0), wait: bool = True) -> MirrorReport | None:
    """Read the cloud into our tables, unless that was done within this age; then, and where there is nothing to be
    mirrored, return nothing.

    If another process is just reading, wait for its end and look again, or without ``wait`` leave it at that.

    Raises:
        CloudError: it could not be read; the tables are as they were, and the reason stands in `Synchronization`.
    """
    if not cloud().is_mirrored:
        return None
    while not Synchronization.current().is_fresh(age):
        if holder := Synchronization.claim(age):
            return read_and_write(holder)
        if not wait:
            break
        time.sleep(settings.POLL_INTERVAL)
    return None


def read_and_write(holder: UUID) -> MirrorReport:
    began, outcome = timezone.now(), "failed"
    try:
        contents = cloud().read_contents(keep(holder))
        report = write_contents(contents, holder, began)
        outcome = "succeeded"
    except UNFIT as problem:
        reason = describe_conflict(problem)
        Synchronization.fail(holder, reason)
        raise CloudError(reason) from problem
    except BaseException as problem:
        Synchronization.fail(holder, str(problem) if isinstance(problem, CloudError) else type(problem).__name__)
        raise
    finally:
        cloud_reading_seconds.labels(outcome).observe((timezone.now() - began).total_seconds())
    log.info("cloud read", created=report.created, changed=report.changed, removed=report.removed)
    return report


def keep(holder: UUID) -> Callable[[], None]:
    """Return a checkpoint that holds the right to read for as long as the reading goes on."""
    renewed = time.monotonic()

    def checkpoint() -> None:
        nonlocal renewed
        if time.monotonic() - renewed < RENEWAL:
            return
        renewed = time.monotonic()
        if not Synchronization.renew(holder):
            raise Overtaken

    return checkpoint


@transaction.atomic
def write_contents(contents: CloudContents, holder: UUID, began: datetime) -> MirrorReport:
    """Write what was read and that it was: both or neither, and only if nobody else reads by now."""
    if not Synchronization.succeed(holder, began, contents.project, contents.user):
        raise Overtaken
    return mirror(contents, began)
