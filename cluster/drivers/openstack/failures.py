"""Read from Nova why an operation failed."""

from typing import Any

from cluster.drivers.base import CloudError, NoValidHost, OperationFailed
from cluster.drivers.openstack.access import Access, one_line

NO_VALID_HOST = "No valid host was found. "


def judge_failure(what: str, reason: str) -> OperationFailed | NoValidHost:
    """Return what a failure is that Nova gives a reason for, if any."""
    if reason.startswith(NO_VALID_HOST):
        return NoValidHost(reason.removeprefix(NO_VALID_HOST))
    return OperationFailed(f"{what} failed: {reason}" if reason else f"{what} failed")


def find_reason(access: Access, server: str) -> str:
    """Return the cloud's words about the last action on a server, as far as it says any."""
    try:
        return one_line(access.ask(lambda cloud: read_fault(cloud, server) or read_event(cloud, server)))
    except CloudError:
        # The failure itself is known already; this would only add the reason.
        return ""


def read_fault(cloud: Any, server: str) -> str:
    found = cloud.compute.get_server(server)
    return one_line((found.fault or {}).get("message") or "") if found.status == "ERROR" else ""


def read_event(cloud: Any, server: str) -> str:
    latest = next(iter(cloud.compute.server_actions(server)), None)
    if latest is None or not latest.message:
        return ""
    events = cloud.compute.get_server_action(latest.request_id, server).events or []
    details = [str(event["details"]) for event in events if event.get("details")]
    return details[-1] if details else str(latest.message)
