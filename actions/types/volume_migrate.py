"""Migrate a volume to another pool, or change its type."""

from collections.abc import Mapping
from typing import Any

from actions.types import messages
from actions.types.base import (
    DONE,
    NAME_SCHEMA,
    UUID_SCHEMA,
    ActionFailed,
    ActionSkipException,
    ActionType,
    Affected,
    Outcome,
    Recovery,
)
from cluster.drivers.base import CloudVolume, VolumeNotFound, cloud
from cluster.drivers.messages import POOL_WITHOUT_TYPE

MIGRATE, RETYPE, SWAP = "migrate", "retype", "swap"


class VolumeMigrate(ActionType):
    """Migrates or retypes a volume; ``swap`` is the same as ``migrate``. It cannot be aborted or reverted."""

    name = "volume_migrate"
    description = "Moving a volume to destination_node or destination_type"
    schema = {
        "type": "object",
        "properties": {
            "resource_id": {**UUID_SCHEMA, "description": "The UUID of the volume."},
            "resource_name": NAME_SCHEMA,
            "migration_type": {
                "type": "string",
                "enum": [MIGRATE, RETYPE, SWAP],
                "description": "`migrate` or `swap`: move the volume to a pool. `retype`: change its type.",
            },
            "destination_node": {"type": "string", "minLength": 1, "description": "The destination pool."},
            "destination_type": {
                "type": "string",
                "minLength": 1,
                "description": "The new volume type, with `retype`.",
            },
        },
        "required": ["resource_id", "migration_type"],
        "additionalProperties": False,
    }

    @classmethod
    def affected(cls, input_parameters: Mapping[str, Any]) -> Affected:
        """Return the affected resources without ``destination_node``, which is a pool, not a compute node."""
        return Affected(input_parameters.get("resource_id"))

    @property
    def volume(self) -> str:
        return str(self.input_parameters["resource_id"])

    @property
    def is_retype(self) -> bool:
        return bool(self.input_parameters["migration_type"] == RETYPE)

    @property
    def pool(self) -> str | None:
        return self.input_parameters.get("destination_node")

    @property
    def volume_type(self) -> str | None:
        return self.input_parameters.get("destination_type")

    def pre_condition(self) -> None:
        try:
            volume = cloud().find_volume(self.volume)
        except VolumeNotFound as missing:
            raise ActionSkipException(str(missing)) from missing
        if self.volume_type:
            cloud().check_volume_type(self.volume_type)
        if self.pool:
            cloud().find_pool(self.pool)
        self.require_destination()
        if self.is_there(volume):
            raise ActionSkipException(
                messages.HAS_VOLUME_TYPE.fill(type=self.volume_type)
                if self.is_retype
                else messages.ON_POOL.fill(pool=self.pool)
            )

    def require_destination(self) -> None:
        needed = "destination_type" if self.is_retype else "destination_node"
        if needed not in self.input_parameters:
            migration = self.input_parameters["migration_type"]
            raise ActionFailed(messages.DESTINATION_REQUIRED.fill(parameter=needed, migration=migration))

    def is_there(self, volume: CloudVolume) -> bool:
        return volume.volume_type == self.volume_type if self.is_retype else volume.pool == self.pool

    def execute(self) -> Outcome:
        self.require_destination()
        if self.is_retype:
            cloud().retype_volume(self.volume, str(self.volume_type))
        else:
            self.check_movable(cloud().find_volume(self.volume))
            cloud().migrate_volume(self.volume, str(self.pool))
        return DONE

    def foresee(self) -> Outcome:
        return self.execute()

    def check_movable(self, volume: CloudVolume) -> None:
        """Raise `ActionFailed` if the volume's servers or its type do not allow the destination."""
        if volume.servers and volume.status != "in-use":
            raise ActionFailed(messages.VOLUME_NOT_IN_USE.fill(volume=self.volume, status=volume.status))
        for server in volume.servers:
            if (status := cloud().find_server(server).status) not in {"ACTIVE", "PAUSED"}:
                raise ActionFailed(messages.USED_BY_OTHER.fill(volume=self.volume, server=server, status=status))
        if volume.volume_type and volume.volume_type not in cloud().find_pool(str(self.pool)).volume_types:
            raise ActionFailed(POOL_WITHOUT_TYPE.fill(pool=self.pool, type=volume.volume_type))

    def abort(self) -> bool:
        return False

    def recover(self) -> Recovery:
        volume = cloud().reconcile_volume(self.volume, self.context.checkpoint)
        return Recovery.DONE if self.is_there(volume) else Recovery.AGAIN
