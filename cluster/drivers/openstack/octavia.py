"""The load balancers of an OpenStack cloud, through Octavia."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from openstack.connection import Connection

from cluster.drivers import openstack_messages as messages
from cluster.drivers.balancing import BalancerPool, BalancingPoolNotFound, DrainingBalancer, PoolMember
from cluster.drivers.base import (
    Checkpoint,
    CloudBusy,
    CloudUnavailable,
    OperationRefused,
    ServerNotFound,
)
from cluster.drivers.messages import OTHER_PORT
from cluster.drivers.openstack.access import Access
from cluster.drivers.openstack.operations import make_failure, wait_until

BROKEN = "ERROR"

PENDING, DELETING = "PENDING_", "PENDING_DELETE"


class OctaviaMembers:
    """Reads and changes of the members of Octavia's pools."""

    def __init__(self, access: Access) -> None:
        self.access = access

    def list_members(self, pool: BalancerPool) -> list[Any]:
        missing = BalancingPoolNotFound(pool.name)
        return self.access.read(lambda cloud: list(cloud.load_balancer.members(pool.uuid)), missing)

    def find_member_of(self, pool: BalancerPool, server: str) -> Any:
        return next((member for member in self.list_members(pool) if member.name == server), None)

    def find(self, pool: BalancerPool, member: str) -> Any:
        return next((candidate for candidate in self.list_members(pool) if candidate.id == member), None)

    def is_leaving(self, pool: BalancerPool, member: str) -> bool:
        details = self.find(pool, member)
        return details is None or details.provisioning_status == DELETING

    def has_values(self, pool: BalancerPool, member: str, changes: Mapping[str, Any]) -> bool:
        details = self.find(pool, member)
        return details is not None and all(getattr(details, name) == value for name, value in changes.items())

    def read_balancer(self, pool: BalancerPool) -> Any:
        key = str(pool.load_balancer)
        return self.access.read(lambda cloud: cloud.load_balancer.get_load_balancer(key))

    def change(self, pool: BalancerPool, begin: Callable[[Connection], Any], is_done: Callable[[], bool]) -> None:
        """Request a change once.

        If the response is lost or another process was faster, ``is_done`` tells whether the change was made.

        Raises:
            CloudBusy: the load balancer is being changed.
            OperationRefused: it is in ERROR, which Octavia reports as a conflict as well.
        """
        try:
            self.access.send(begin)
        except (CloudBusy, CloudUnavailable) as problem:
            if is_done():
                return
            balancer = self.read_balancer(pool)
            if balancer.provisioning_status == BROKEN:
                raise OperationRefused(messages.BALANCER_BROKEN.fill(name=balancer.name)) from problem
            raise

    def wait_until_unlocked(self, pool: BalancerPool, member: str, operation: str, checkpoint: Checkpoint) -> Any:
        """Wait until the load balancer accepts changes again, and return the member, or None if it was deleted."""

        def poll() -> tuple[Any, Any]:
            return self.read_balancer(pool), self.find(pool, member)

        def is_done(objects: tuple[Any, Any]) -> bool:
            return not any(is_pending(item) for item in objects if item is not None)

        return wait_until(poll, is_done, operation, checkpoint)[1]


class OctaviaBalancer(OctaviaMembers, DrainingBalancer):
    """The load balancers of Octavia.

    The name of a member is the UUID of its server, so that it can be found after the server was deleted.

    Octavia makes one change of a load balancer at a time, and rejects other requests with a conflict. The driver
    requests each change once, and waits for its end.
    """

    def find_pool(self, pool: str) -> BalancerPool:
        self.access.require("load-balancer", "Octavia")
        details = self.access.read(lambda cloud: cloud.load_balancer.find_pool(pool))
        if details is None:
            raise BalancingPoolNotFound(pool)
        return BalancerPool(details.id, details.name, details.loadbalancers[0]["id"])

    def members(self, pool: str) -> list[PoolMember]:
        return [read_pool_member(member) for member in self.list_members(self.find_pool(pool))]

    def write_member(
        self, pool: BalancerPool, server: str, port: int, weight: int, subnet: str | None, checkpoint: Checkpoint
    ) -> PoolMember:
        operation = messages.ADDING_TO_POOL.fill(server=server, pool=pool.name)
        member = self.find_idle_member(pool, server, operation, checkpoint)
        if member is None:
            return self.create(pool, server, port, weight, subnet, checkpoint)
        if member.protocol_port != port:
            raise OperationRefused(OTHER_PORT.fill(server=server, pool=pool.name, port=member.protocol_port))
        return self.update(pool, member, operation, checkpoint, weight=weight)

    def create(
        self, pool: BalancerPool, server: str, port: int, weight: int, subnet: str | None, checkpoint: Checkpoint
    ) -> PoolMember:
        """Create a member with the server's address, or take over a member with the same address and port."""
        operation = messages.ADDING_TO_POOL.fill(server=server, pool=pool.name)
        subnet_id = find_subnet(self.access, subnet) if subnet else self.read_balancer(pool).vip_subnet_id
        address = require_address(self.access, server, subnet_id)
        for member in self.list_members(pool):
            if (member.address, member.protocol_port) == (address, port):
                return self.update(pool, member, operation, checkpoint, name=server, weight=weight)
        self.change(
            pool,
            lambda cloud: cloud.load_balancer.create_member(
                pool.uuid, name=server, address=address, protocol_port=port, weight=weight, subnet_id=subnet_id
            ),
            is_done=lambda: self.find_member_of(pool, server) is not None,
        )
        created = self.find_idle_member(pool, server, operation, checkpoint)
        if created is None:
            raise make_failure(operation, messages.MEMBER_NOT_PROVISIONED.text)
        return read_pool_member(created)

    def update(
        self, pool: BalancerPool, member: Any, operation: str, checkpoint: Checkpoint, **values: Any
    ) -> PoolMember:
        """Change the attributes of a member that differ."""
        changes = {name: value for name, value in values.items() if getattr(member, name) != value}
        if not changes:
            return read_pool_member(member)
        self.change(
            pool,
            lambda cloud: cloud.load_balancer.update_member(member.id, pool.uuid, **changes),
            is_done=lambda: self.has_values(pool, member.id, changes),
        )
        updated = self.wait_until_unlocked(pool, member.id, operation, checkpoint)
        if updated is None or updated.provisioning_status == BROKEN:
            raise make_failure(operation, messages.MEMBER_NOT_CHANGED.text)
        return read_pool_member(updated)

    def drain(self, pool: BalancerPool, server: str, checkpoint: Checkpoint) -> PoolMember | None:
        operation = messages.DRAINING.fill(server=server, pool=pool.name)
        member = self.find_member_to_remove(pool, server)
        return self.update(pool, member, operation, checkpoint, weight=0) if member is not None else None

    def delete_member(self, pool: BalancerPool, server: str, checkpoint: Checkpoint) -> None:
        member = self.find_member_to_remove(pool, server)
        if member is not None:
            operation = messages.REMOVING_FROM_POOL.fill(server=server, pool=pool.name)
            self.delete(pool, member, operation, checkpoint)

    def delete(self, pool: BalancerPool, member: Any, operation: str, checkpoint: Checkpoint) -> None:
        if member.provisioning_status != DELETING:
            self.change(
                pool,
                lambda cloud: cloud.load_balancer.delete_member(member.id, pool.uuid),
                is_done=lambda: self.is_leaving(pool, member.id),
            )
        if self.wait_until_unlocked(pool, member.id, operation, checkpoint) is not None:
            raise make_failure(operation, messages.MEMBER_NOT_DELETED.text)

    def find_idle_member(self, pool: BalancerPool, server: str, operation: str, checkpoint: Checkpoint) -> Any:
        """Return the member of a server after any change in progress, or None. Delete a member in ERROR."""
        member = self.find_member_of(pool, server)
        if member is not None and is_pending(member):
            member = self.wait_until_unlocked(pool, member.id, operation, checkpoint)
        if member is not None and member.provisioning_status == BROKEN:
            self.delete(pool, member, operation, checkpoint)
            member = None
        return member

    def find_member_to_remove(self, pool: BalancerPool, server: str) -> Any:
        """Return the member of a server, including one with another name but an address of the server."""
        members = self.list_members(pool)
        match = next((member for member in members if member.name == server), None)
        if match is not None or all(read_member_server(member) for member in members):
            return match
        addresses = find_addresses(self.access, server)
        unnamed = (member for member in members if read_member_server(member) is None)
        return next((member for member in unnamed if member.address in addresses), None)


def is_pending(item: Any) -> bool:
    return str(item.provisioning_status).startswith(PENDING)


def read_member_server(member: Any) -> str | None:
    try:
        return str(UUID(member.name))
    except (ValueError, TypeError, AttributeError):
        return None


def read_pool_member(member: Any) -> PoolMember:
    return PoolMember(read_member_server(member), member.protocol_port, member.weight, address=member.address)


def find_subnet(access: Access, subnet: str) -> str:
    """Return the id of a subnet by its id or its name. Raises: `OperationRefused`."""
    access.require("network", "Neutron")
    details = access.read(lambda cloud: cloud.network.find_subnet(subnet))
    if details is None:
        raise OperationRefused(messages.SUBNET_NOT_FOUND.fill(subnet=subnet))
    return str(details.id)


def find_addresses(access: Access, server: str, subnet: str | None = None) -> list[str]:
    """Return the fixed addresses of a server, on one subnet or on all. A deleted server has none."""
    access.require("network", "Neutron")
    ports = access.read(lambda cloud: list(cloud.network.ports(device_id=server)))
    fixed = [address for port in ports for address in port.fixed_ips]
    return [str(fixed_ip["ip_address"]) for fixed_ip in fixed if subnet in {None, fixed_ip["subnet_id"]}]


def require_address(access: Access, server: str, subnet: str) -> str:
    """Return a server's address on a subnet.

    Raises:
        ServerNotFound, OperationRefused: there is no such server, or it has no address there.
    """
    addresses = find_addresses(access, server, subnet)
    if not addresses:
        access.read(lambda cloud: cloud.compute.get_server(server), ServerNotFound(server))
        raise OperationRefused(messages.NO_ADDRESS.fill(server=server, subnet=subnet))
    return addresses[0]
