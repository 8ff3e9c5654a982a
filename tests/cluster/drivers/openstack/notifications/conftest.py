"""A cloud that was read once, some time before its notifications."""

import pytest

from cluster.models import Synchronization
from cluster.operations.synchronization import synchronize
from tests.cluster.drivers.openstack.notifications.samples import ago
from tests.cluster.emulator.server import Emulator


def read_cloud() -> None:
    """Read the cloud, as if that had begun ten minutes ago."""
    synchronize()
    Synchronization.objects.update(succeeded_at=ago(600))


@pytest.fixture
def read(emulator: Emulator) -> Emulator:
    """A cloud with a server on compute1."""
    emulator.nova.add_server("web", "compute1")
    read_cloud()
    return emulator
