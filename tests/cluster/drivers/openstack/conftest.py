"""The site with an emulated OpenStack cloud, which responds over HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.cluster.drivers.openstack.cached_contents import write_cached_contents
from tests.cluster.emulator.placement import inventory
from tests.cluster.emulator.server import Emulator


@pytest.fixture
def emulator(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """The configured cloud: two hosts and one flavor, polled without waiting."""
    cloud = Emulator().start()
    (tmp_path / "clouds.yaml").write_text(cloud.clouds_yaml())
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    settings.CLOUD = "cluster.drivers.openstack.OpenStackCloud"
    settings.OPENSTACK_CLOUD = "emulated"
    settings.OPENSTACK_WAIT = 0
    settings.OPENSTACK_POLL_INTERVAL = 0.01
    settings.OPENSTACK_TIMEOUT = 10
    settings.POLL_INTERVAL = 0.01
    cloud.nova.add_flavor("f1", "m1.small")
    for host in ("compute1", "compute2"):
        node = cloud.nova.add_host(host)
        cloud.placement.inventories[node] = {
            "VCPU": inventory(16, 1, 4.0),
            "MEMORY_MB": inventory(32768, 512, 1.5),
            "DISK_GB": inventory(500, 10),
        }
    yield cloud
    cloud.stop()


@pytest.fixture
def server(emulator: Emulator) -> str:
    """The UUID of a server on compute1. The cloud has its flavor and a larger one."""
    emulator.nova.add_flavor("f2", "m1.large", vcpus=4, ram=8192)
    key = emulator.nova.add_server("web", "compute1")
    write_cached_contents("a server and two flavors")
    return key
