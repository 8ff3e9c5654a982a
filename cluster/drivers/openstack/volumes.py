"""The part of `OpenStackCloud` for volumes, through Cinder."""

from abc import ABC
from collections.abc import Callable
from typing import Any

from openstack.connection import Connection

from cluster.drivers import openstack_messages as messages
from cluster.drivers.base import (
    Checkpoint,
    Cloud,
    CloudBusy,
    CloudPool,
    CloudUnavailable,
    CloudVolume,
    OperationFailed,
    PoolNotFound,
    VolumeNotFound,
    VolumeTypeNotFound,
    proceed,
)
from cluster.drivers.messages import VOLUME_BUSY
from cluster.drivers.openstack.access import Access
from cluster.drivers.openstack.items import takes, volume_item
from cluster.drivers.openstack.operations import is_marked, marked, wait_for_begin, wait_until
from cluster.models import Volume
from cluster.synchronization.mirroring import record_volume, record_volume_gone

# Cinder's statuses of a migration in progress.
MOVING = {"starting", "migrating", "completing"}
SERVICE = ("block-storage", "Cinder")


class OpenStackVolumes(Cloud, ABC):
    access: Access

    def find_volume(self, volume: str) -> CloudVolume:
        self.access.require(*SERVICE)
        return self.describe_volume(self.fetch_volume(volume, self.access.read))

    def fetch_volume(self, volume: str, send: Callable[..., Any] | None = None) -> Any:
        """Return a volume of Cinder. Raises: `VolumeNotFound`.

        Args:
            send: the method of the access to use, by default the one that sends a request once.
        """
        try:
            return (send or self.access.send)(
                lambda cloud: cloud.block_storage.get_volume(volume), VolumeNotFound(volume)
            )
        except VolumeNotFound:
            record_volume_gone(volume)
            raise

    def describe_volume(self, volume: Any) -> CloudVolume:
        record_volume(volume_item(volume))
        servers = tuple(entry["server_id"] for entry in volume.attachments or [])
        return CloudVolume(volume.id, volume.name or "", volume.status, volume.host, volume.volume_type, servers)

    def find_pool(self, pool: str) -> CloudPool:
        self.access.require(*SERVICE)
        pools = self.access.read(lambda cloud: list(cloud.block_storage.backend_pools()))
        details = next((candidate for candidate in pools if candidate.name == pool), None)
        if details is None:
            raise PoolNotFound(pool)
        return CloudPool(pool, tuple(kind.name for kind in self.read_types() if takes(details, kind)))

    def read_types(self) -> list[Any]:
        return self.access.read(lambda cloud: list(cloud.block_storage.types()))

    def check_volume_type(self, volume_type: str) -> None:
        self.access.require(*SERVICE)
        if not any(kind.name == volume_type for kind in self.read_types()):
            raise VolumeTypeNotFound(volume_type)

    def migrate_volume(self, volume: str, pool: str, checkpoint: Checkpoint = proceed) -> None:
        after = self.run_volume_operation(
            volume,
            lambda cloud: cloud.block_storage.migrate_volume(volume, host=pool),
            messages.MIGRATING_VOLUME.fill(volume=volume),
            checkpoint,
        )
        if after.host != pool:
            message = messages.STILL_IN_POOL_BY_CINDER if is_failed(after) else messages.STILL_IN_POOL
            raise OperationFailed(message.fill(volume=volume, pool=after.host))

    def retype_volume(self, volume: str, volume_type: str, checkpoint: Checkpoint = proceed) -> None:
        after = self.run_volume_operation(
            volume,
            lambda cloud: cloud.block_storage.retype_volume(volume, volume_type, "on-demand"),
            messages.RETYPING.fill(volume=volume),
            checkpoint,
        )
        if after.volume_type != volume_type:
            message = messages.OTHER_TYPE_BY_CINDER if is_failed(after) else messages.OTHER_TYPE
            raise OperationFailed(message.fill(volume=volume, type=after.volume_type))

    def reconcile_volume(self, volume: str, checkpoint: Checkpoint = proceed) -> CloudVolume:
        """Wait until Cinder has completed the operation."""
        if not is_marked(Volume, volume):
            return self.find_volume(volume)
        with marked(Volume, volume):
            details = wait_until(
                lambda: self.fetch_volume(volume),
                is_idle,
                messages.VOLUME_UNDER_WAY.fill(volume=volume),
                checkpoint,
            )
        return self.describe_volume(details)

    def run_volume_operation(
        self, volume: str, begin: Callable[[Connection], Any], operation: str, checkpoint: Checkpoint
    ) -> Any:
        """Request an operation and wait for its end."""
        before = self.fetch_volume(volume, self.access.read)
        self.describe_volume(before)
        if not is_idle(before):
            raise CloudBusy(VOLUME_BUSY.fill(volume=volume, status=before.migration_status or before.status))
        with marked(Volume, volume):
            self.request_volume_operation(before, begin, operation, checkpoint)
            after = wait_until(lambda: self.fetch_volume(volume), is_idle, operation, checkpoint)
        self.describe_volume(after)
        return after

    def request_volume_operation(
        self, before: Any, begin: Callable[[Connection], Any], operation: str, checkpoint: Checkpoint
    ) -> None:
        """Request an operation once. If the response is lost, the volume's state shows whether Cinder began it."""

        def has_begun(volume: Any) -> bool:
            return not is_idle(volume) or (volume.host, volume.volume_type) != (before.host, before.volume_type)

        try:
            self.access.send(begin, VolumeNotFound(before.id))
        except CloudUnavailable as problem:
            wait_for_begin(lambda: self.fetch_volume(before.id), has_begun, problem, operation, checkpoint)


def is_idle(volume: Any) -> bool:
    return volume.migration_status not in MOVING and volume.status not in {"retyping", "maintenance"}


def is_failed(volume: Any) -> bool:
    """Return whether Cinder reports the last migration as failed."""
    return bool(volume.migration_status == "error")
