"""`Balancer`, the interface of a cloud's load balancers, whose pools servers are moved into and out of.

`DrainingBalancer`, the base of those of real clouds, checks arguments and grants a server the time to leave a pool.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone

from cluster.drivers.base import Checkpoint, CloudBusy, CloudError, OperationRefused, ServerNotFound, cloud, proceed
from cluster.models import Draining
from cluster.models.balancing import HEAVIEST, LAST_PORT

# A year: what is larger is a mistake.
LONGEST = 365 * 24 * 3600


class BalancingPoolNotFound(CloudError):
    def __init__(self, pool: str) -> None:
        super().__init__(f"Load-balancer pool {pool} not found")


class MemberDraining(CloudBusy):
    """A server that is leaving a pool may still serve connections; ``until`` is the end of its grace period."""

    def __init__(self, server: str, pool: str, connections: int | None, until: datetime) -> None:
        what = "may still have connections" if connections is None else f"still has {connections} of its connections"
        super().__init__(f"Instance {server} {what} in pool {pool}, which it has until {until:%H:%M:%S} UTC to end")
        self.until = until


@dataclass(frozen=True)
class BalancerPool:
    """A pool of a load balancer; ``load_balancer`` is the UUID of the load balancer, in clouds that have them."""

    uuid: str
    name: str
    load_balancer: str | None = None


@dataclass(frozen=True)
class PoolMember:
    """A member of a pool.

    ``server`` is its UUID, or None where somebody else added it and the pool does not tell; ``connections`` the number
    of those that are open now, or None where the pool cannot tell. With ``weight`` 0 it gets no new ones.
    """

    server: str | None
    port: int
    weight: int
    connections: int | None = None
    address: str | None = None


class Balancer(ABC):
    """The load balancers of the cloud that `settings.CLOUD` names: `balancer` returns the one to use.

    A pool is named by its UUID or its name, a server by its UUID. Every call is idempotent: however often, and by
    however many processes, it is made, a server has one member in the pool afterwards, or none. After a crash the call
    is just repeated; no progress has to be stored. Every call returns when the load balancer has completed the change,
    and long ones call the ``checkpoint`` as those of `Cloud` do, outside of any transaction.

    All raise a `CloudError` with a message for users:

    - `BalancingPoolNotFound`: there is no such pool.
    - `CloudBusy`: the load balancer is being changed by another request, or connections are still open
      (`MemberDraining`). The same call may be made again later: an action answers RETRY, as it does by itself.
    - `OperationRefused`: the server is in the pool with another port or has no address there, the load balancer is
      broken, or an argument is out of its range.
    - `CloudUnavailable`, `CloudMisconfigured`, `OperationFailed`: as in `Cloud`.
    """

    @abstractmethod
    def find_pool(self, pool: str) -> BalancerPool:
        """Raises: `BalancingPoolNotFound`."""

    @abstractmethod
    def members(self, pool: str) -> list[PoolMember]:
        """Return all members, also those whose server is gone."""

    @abstractmethod
    def add_member(
        self,
        pool: str,
        server: str,
        port: int,
        weight: int = 1,
        subnet: str | None = None,
        checkpoint: Checkpoint = proceed,
    ) -> PoolMember:
        """Add a server to a pool. If it is a member already, or is leaving, its weight is set.

        Args:
            port: the port on which the server takes connections, 1 to 65535.
            weight: its share of new connections, 0 to 256.
            subnet: the id or name of the subnet on which the pool reaches the server, in clouds with subnets; by
                default that of the load balancer's own address.

        Raises:
            ServerNotFound: there is no such server.
        """

    @abstractmethod
    def remove_member(self, pool: str, server: str, grace_period: float = 0, checkpoint: Checkpoint = proceed) -> None:
        """Take a server out of a pool, if it is in it. It may be gone from the cloud already.

        With a ``grace_period``, in seconds, it gets no new connections from the first call on, and leaves at the first
        call when none is open any more, or the period is over; until then the answer is `MemberDraining`. The period
        counts from the first call, whichever process made it. A pool that cannot tell the connections has it last to
        its end. Without a grace period the connections that are open are cut.

        An action is tried again `settings.ACTION_RETRIES` times and no more: one that grants more time than those
        pauses last goes by ``MemberDraining.until``, and asks again by itself.
        """


def balancer() -> Balancer:
    """Return what balances the load of the cloud that is in use.

    Raises:
        CloudMisconfigured: its driver knows of nothing that does.
    """
    return cloud().make_balancer()


class DrainingBalancer(Balancer, ABC):
    """A server that is leaving has a row in our table until it is out, or back."""

    def add_member(
        self,
        pool: str,
        server: str,
        port: int,
        weight: int = 1,
        subnet: str | None = None,
        checkpoint: Checkpoint = proceed,
    ) -> PoolMember:
        require_range("port", port, 1, LAST_PORT)
        require_range("weight", weight, 0, HEAVIEST)
        found, uuid = self.find_pool(pool), checked_uuid(server)
        # First, so that its next leaving does not count from this one.
        stop_counting(found, uuid)
        return self.put(found, uuid, port, weight, subnet, checkpoint)

    def remove_member(self, pool: str, server: str, grace_period: float = 0, checkpoint: Checkpoint = proceed) -> None:
        require_range("grace_period", grace_period, 0, LONGEST)
        found, uuid = self.find_pool(pool), checked_uuid(server)
        if grace_period:
            self.require_drained(found, uuid, grace_period, checkpoint)
        self.take_out(found, uuid, checkpoint)
        stop_counting(found, uuid)

    def require_drained(self, pool: BalancerPool, server: str, grace_period: float, checkpoint: Checkpoint) -> None:
        """Raises: `MemberDraining`."""
        draining, _ = Draining.objects.get_or_create(pool=pool.uuid, server=server)
        member = self.drain(pool, server, checkpoint)
        until = draining.since + timedelta(seconds=grace_period)
        if member is not None and member.connections != 0 and timezone.now() < until:
            raise MemberDraining(server, pool.name, member.connections, until)

    @abstractmethod
    def put(
        self, pool: BalancerPool, server: str, port: int, weight: int, subnet: str | None, checkpoint: Checkpoint
    ) -> PoolMember:
        """Do what `add_member` promises."""

    @abstractmethod
    def drain(self, pool: BalancerPool, server: str, checkpoint: Checkpoint) -> PoolMember | None:
        """Give a server no new connections, and return it with those that it then still has, if it is a member."""

    @abstractmethod
    def take_out(self, pool: BalancerPool, server: str, checkpoint: Checkpoint) -> None:
        """Remove a server from a pool, if it is a member."""


def stop_counting(pool: BalancerPool, server: str) -> None:
    Draining.objects.filter(pool=pool.uuid, server=server).delete()


def require_range(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise OperationRefused(f"{name}: {value} is not in the range from {least} to {most}")


def checked_uuid(server: str) -> str:
    try:
        return str(UUID(server))
    except ValueError as malformed:
        raise ServerNotFound(server) from malformed
