"""The health of the cloud, as /readyz reports it."""

from cluster.drivers.base import cloud
from cluster.models import Synchronization
from watcher_site.processes.service_health import Component


def find_cloud() -> Component | None:
    """Return the result of the last reading of a real cloud, in one query; None for the embedded cloud."""
    if not cloud().is_mirrored:
        return None
    row = Synchronization.objects.filter(pk=Synchronization.ONLY).first()
    if row is None or (row.succeeded_at is None and not row.problem):
        return Component("cloud", "The cloud was not read yet.")
    return Component("cloud", row.problem or None)
