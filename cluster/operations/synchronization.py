"""The synchronization of the site's tables with a real cloud, by one reading at a time."""

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
from cluster.synchronization.rows import CONFLICTS, describe_conflict
from watcher_site.monitoring.metrics import cloud_reading_seconds

log = structlog.get_logger(__name__)
# Seconds between renewals of a reading.
RENEWAL = 30


class Overtaken(CloudError):
    """Another reading began, because this one was not renewed in time."""

    def __init__(self) -> None:
        super().__init__("The reading of the cloud was overtaken by another, and nothing of it was written")


def synchronize(age: timedelta = timedelta(0), wait: bool = True) -> MirrorReport | None:
    """Read a real cloud into the site's tables, unless the last reading is more recent than ``age``.

    Return None if nothing was read. If another process is reading, wait for its end and check again, or return if
    ``wait`` is false.

    Raises:
        CloudError: the reading failed. The tables are unchanged, and `Synchronization` contains the reason.
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
        contents = cloud().read_contents(make_renewal_checkpoint(holder))
        report = write_contents(contents, holder, began)
        outcome = "succeeded"
    except CONFLICTS as problem:
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


def make_renewal_checkpoint(holder: UUID) -> Callable[[], None]:
    """Return a checkpoint that renews a reading at intervals. It raises `Overtaken` if another one began."""
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
    """Write the contents and the success of a reading. Raises: `Overtaken` if another one began."""
    if not Synchronization.succeed(holder, began, contents.project, contents.user):
        raise Overtaken
    return mirror(contents, began)
