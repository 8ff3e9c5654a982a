"""Run cinder-volume with Cinder's fake driver: each backend has a pool of its own name and a capacity.

It runs in the environment of the control plane: ``volume_service.py GIGABYTES``, then the arguments of cinder-volume.
"""

import sys

from cinder.cmd import volume
from cinder.tests import fake_driver


def main() -> None:
    capacity = int(sys.argv.pop(1))
    driver = fake_driver.FakeLoggingVolumeDriver
    initialize, report = driver.__init__, driver._update_volume_stats

    def initialize_named(self, *args, **options):
        initialize(self, *args, **options)
        self.backend_name = self.configuration.volume_backend_name

    def report_capacity(self):
        report(self)
        sizes = {"total_capacity_gb": capacity, "free_capacity_gb": capacity, "reserved_percentage": 0}
        for pool in self._stats["pools"]:
            pool.update(sizes)

    def migrate(self, context, volume, host, *args, **options):
        """Move a volume without a copy of its data, as backends of one array do."""
        return True, None

    driver.__init__, driver._update_volume_stats, driver.migrate_volume = initialize_named, report_capacity, migrate
    sys.exit(volume.main())


if __name__ == "__main__":
    main()
