"""Run nova-compute with Nova's fake driver: a node of a stable UUID and a given size.

It runs in the environment of the control plane: ``compute_service.py FOLDER HOST VCPUS MEMORY DISK``, then the
arguments of nova-compute.
"""

import sys
from pathlib import Path
from uuid import NAMESPACE_DNS, uuid5

from nova.cmd import compute
from nova.virt import fake
from oslo_utils.fixture import uuidsentinel


def main() -> None:
    folder, host, vcpus, memory, disk = sys.argv[1:6]
    key = str(uuid5(NAMESPACE_DNS, host))
    # The driver would generate a new UUID of its node at each start.
    uuidsentinel._sentinels["node_" + host] = key
    # A driver of a hypervisor writes this file; without it Nova refuses the second start on a host.
    Path(folder, "state", host, "compute_id").write_text(key)
    for driver in (fake.FakeDriver, fake.FakeLiveMigrateDriver):
        driver.vcpus, driver.memory_mb, driver.local_gb = int(vcpus), int(memory), int(disk)
    del sys.argv[1:6]
    sys.exit(compute.main())


if __name__ == "__main__":
    main()
