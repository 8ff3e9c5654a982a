"""The events of Nova and Cinder that change the site's tables, with their handlers.

Nova sends some events with an outdated copy of the server: in a live migration, the event of the source
(``live_migration_post``) still names the old host. Only events after the last change of an operation are used.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from cluster.drivers.openstack.notifications import payloads
from cluster.drivers.openstack.notifications.payloads import require, unwrap
from cluster.models import Server
from cluster.synchronization import notified_objects

Handler = Callable[[Any, datetime], bool]
COMPUTE = "nova-compute"


def change_server(payload: Any, time: datetime, is_restored: bool = False) -> bool:
    data = unwrap(payload)
    if data.get("state") == payloads.DELETED:
        return delete_server(payload, time)
    # Only the site sends notifications with this state, which Nova does not have.
    if data.get("state") == Server.State.PENDING:
        return False
    return notified_objects.write_server(payloads.notified_server(data), time, is_restored)


def restore_server(payload: Any, time: datetime) -> bool:
    return change_server(payload, time, is_restored=True)


def delete_server(payload: Any, time: datetime, is_permanent: bool = True) -> bool:
    data = require(payloads.INSTANCE_KEY, unwrap(payload), "instance")
    return notified_objects.remove_server(data["uuid"], time, is_permanent)


def soft_delete_server(payload: Any, time: datetime) -> bool:
    """Delete a server that Nova keeps for some time, so that it can be restored."""
    return delete_server(payload, time, is_permanent=False)


def change_service(payload: Any, time: datetime) -> bool:
    data = require(payloads.SERVICE, unwrap(payload), "service")
    if data["binary"] != COMPUTE or not data["host"]:
        return False
    columns = payloads.service_columns(data, time)
    return notified_objects.write_compute_service(data["host"], columns, time)


def delete_service(payload: Any, time: datetime) -> bool:
    data = require(payloads.SERVICE, unwrap(payload), "service")
    return bool(
        data["binary"] == COMPUTE and data["host"] and notified_objects.remove_compute_node(data["host"], time)
    )


def change_aggregate(payload: Any, time: datetime) -> bool:
    data = require(payloads.AGGREGATE, unwrap(payload), "aggregate")
    return notified_objects.write_aggregate(payloads.notified_aggregate(data), time)


def delete_aggregate(payload: Any, time: datetime) -> bool:
    data = require(payloads.AGGREGATE, unwrap(payload), "aggregate")
    return notified_objects.remove_aggregate(data["id"], time)


def change_volume(payload: Any, time: datetime) -> bool:
    data = require(payloads.VOLUME, payload, "volume")
    return notified_objects.write_volume(payloads.notified_volume(data), payloads.attached_servers(data), time)


def delete_volume(payload: Any, time: datetime) -> bool:
    data = require(payloads.VOLUME_KEY, payload, "volume")
    return notified_objects.remove_volume(data["volume_id"], time)


NOVA: dict[str, Handler] = {
    **dict.fromkeys(
        [
            "instance.create.end",
            "instance.update",
            "instance.lock",
            "instance.unlock",
            "instance.live_migration_post_dest.end",
            "instance.live_migration_rollback.end",
            "instance.resize_finish.end",
            "instance.resize_confirm.end",
            "instance.resize_revert.end",
            "instance.rebuild.end",
            "instance.reboot.end",
            "instance.power_on.end",
            "instance.power_off.end",
            "instance.pause.end",
            "instance.unpause.end",
            "instance.suspend.end",
            "instance.resume.end",
            "instance.rescue.end",
            "instance.unrescue.end",
            "instance.shelve.end",
            "instance.shelve_offload.end",
            "instance.unshelve.end",
        ],
        change_server,
    ),
    "instance.restore.end": restore_server,
    "instance.delete.end": delete_server,
    "instance.soft_delete.end": soft_delete_server,
    "service.create": change_service,
    "service.update": change_service,
    "service.delete": delete_service,
    **dict.fromkeys(
        [
            "aggregate.create.end",
            "aggregate.add_host.end",
            "aggregate.remove_host.end",
            "aggregate.update_metadata.end",
            "aggregate.update_prop.end",
        ],
        change_aggregate,
    ),
    "aggregate.delete.end": delete_aggregate,
}
CINDER: dict[str, Handler] = {
    **dict.fromkeys(
        [
            "volume.create.end",
            "volume.update.end",
            "volume.attach.end",
            "volume.detach.end",
            "volume.resize.end",
            "volume.retype",
            "volume.revert.end",
            "volume.transfer.accept.end",
            "volume.manage_existing.end",
        ],
        change_volume,
    ),
    **dict.fromkeys(["volume.delete.end", "volume.unmanage.end"], delete_volume),
}
