"""A cloud that was read once, some time before its notifications."""

import pytest

from cluster.models import Synchronization
from cluster.operations.synchronization import synchronize
from tests.cluster.drivers.openstack.notifications.samples import ago
from tests.cluster.drivers.openstack.same_contents import write_same_contents
from tests.cluster.emulator.server import Emulator


def read_cloud(name: str = "") -> None:
    """Read the cloud, as if that had begun ten minutes ago. One with a name has the same contents in each test."""
    if name:
        write_same_contents(name)
    else:
        synchronize()
    Synchronization.objects.update(succeeded_at=ago(600))


@pytest.fixture
def read(emulator: Emulator) -> Emulator:
    """A cloud with a server on compute1."""
    emulator.nova.add_server("web", "compute1")
    read_cloud("a server")
    return emulator
