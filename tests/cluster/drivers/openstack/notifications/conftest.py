"""A cloud that was synchronized some time before its notifications."""

import pytest

from cluster.models import Synchronization
from cluster.operations.synchronization import synchronize
from tests.cluster.drivers.openstack.cached_contents import write_cached_contents
from tests.cluster.drivers.openstack.notifications.samples import ago
from tests.cluster.emulator.server import Emulator


def read_cloud(name: str = "") -> None:
    """Synchronize with the cloud, dated ten minutes ago. A name stands for the same contents in each test."""
    if name:
        write_cached_contents(name)
    else:
        synchronize()
    Synchronization.objects.update(succeeded_at=ago(600))


@pytest.fixture
def synced(emulator: Emulator) -> Emulator:
    """A synchronized cloud with a server on compute1."""
    emulator.nova.add_server("web", "compute1")
    read_cloud("a server")
    return emulator
