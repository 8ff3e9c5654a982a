"""Run nova-compute with Nova's fake driver: a node of a stable UUID and a given size.

Migrations from the node last while the file ``held`` exists in its folder: a test does not depend on a duration.

It runs in the environment of the control plane: ``compute_service.py FOLDER HOST VCPUS MEMORY DISK``, then the
arguments of nova-compute.
"""

import sys
import time
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
    hold_migrations(fake.FakeLiveMigrateDriver, Path(folder, "state", host, "held"))
    for driver in (fake.FakeDriver, fake.FakeLiveMigrateDriver):
        driver.vcpus, driver.memory_mb, driver.local_gb = int(vcpus), int(memory), int(disk)
    del sys.argv[1:6]
    sys.exit(compute.main())


def hold_migrations(driver, file):
    """Replace the migrations of a driver by migrations that last while a file exists; live migrations can be aborted.

    Those of the fake driver itself last five seconds, and forget a request to abort that arrives at their beginning.
    """
    aborted = set()

    def live_migration(self, context, instance, dest, post_method, recover_method, block_migration, migrate_data):
        while file.exists() and instance.uuid not in aborted:
            time.sleep(0.1)
        if instance.uuid in aborted:
            aborted.remove(instance.uuid)
            recover_method(context, instance, dest, migrate_data, migration_status="cancelled")
        else:
            post_method(context, instance, dest, block_migration, migrate_data)

    def live_migration_abort(self, instance):
        aborted.add(instance.uuid)

    def migrate_disk_and_power_off(self, *args, **kwargs):
        while file.exists():
            time.sleep(0.1)

    driver.live_migration, driver.live_migration_abort = live_migration, live_migration_abort
    driver.migrate_disk_and_power_off = migrate_disk_and_power_off


if __name__ == "__main__":
    main()
