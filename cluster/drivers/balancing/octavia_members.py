"""The members of Octavia's pools: looking at them, and changing one at a time."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from openstack.connection import Connection

from cluster.drivers.balancing.base import BalancerPool, BalancingPoolNotFound
from cluster.drivers.base import Checkpoint, CloudBusy, CloudUnavailable, OperationRefused
from cluster.drivers.openstack.access import Access
from cluster.drivers.openstack.waiting import wait_until

BROKEN = "ERROR"
PENDING, LEAVING = "PENDING_", "PENDING_DELETE"


class OctaviaMembers:
    def __init__(self, access: Access) -> None:
        self.access = access

    def list_members(self, pool: BalancerPool) -> list[Any]:
        missing = BalancingPoolNotFound(pool.name)
        return self.access.read(lambda cloud: list(cloud.load_balancer.members(pool.uuid)), missing)

    def look_for(self, pool: BalancerPool, server: str) -> Any:
        return next((member for member in self.list_members(pool) if member.name == server), None)

    def find(self, pool: BalancerPool, member: str) -> Any:
        return next((one for one in self.list_members(pool) if one.id == member), None)

    def is_leaving(self, pool: BalancerPool, member: str) -> bool:
        found = self.find(pool, member)
        return found is None or found.provisioning_status == LEAVING

    def is_so(self, pool: BalancerPool, member: str, changes: Mapping[str, Any]) -> bool:
        found = self.find(pool, member)
        return found is not None and all(getattr(found, name) == value for name, value in changes.items())

    def read_balancer(self, pool: BalancerPool) -> Any:
        key = str(pool.load_balancer)
        return self.access.read(lambda cloud: cloud.load_balancer.get_load_balancer(key))

    def change(self, pool: BalancerPool, begin: Callable[[Connection], Any], is_done: Callable[[], bool]) -> None:
        """Request a change once.

        If the answer is lost or another process was faster, the current state tells if it was made.

        Raises:
            CloudBusy: the load balancer is being changed.
            OperationRefused: it is broken, which Octavia reports as a conflict as well.
        """
        try:
            self.access.ask(begin)
        except (CloudBusy, CloudUnavailable) as problem:
            if is_done():
                return
            found = self.read_balancer(pool)
            if found.provisioning_status == BROKEN:
                raise OperationRefused(f"Load balancer {found.name} is in provisioning status ERROR") from problem
            raise

    def settle(self, pool: BalancerPool, member: str, what: str, checkpoint: Checkpoint) -> Any:
        """Wait until a load balancer may be changed again, and return the member as it then is, if there is one."""

        def look() -> tuple[Any, Any]:
            return self.read_balancer(pool), self.find(pool, member)

        def is_over(found: tuple[Any, Any]) -> bool:
            return not any(is_pending(one) for one in found if one is not None)

        return wait_until(look, is_over, what, checkpoint)[1]


def is_pending(found: Any) -> bool:
    return str(found.provisioning_status).startswith(PENDING)


def read_member_server(member: Any) -> str | None:
    try:
        return str(UUID(member.name))
    except (ValueError, TypeError, AttributeError):
        return None
