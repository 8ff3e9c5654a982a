"""The interface of load balancers (`Balancer`): adding servers to pools and removing them.

`DrainingBalancer`, the base class of the drivers, checks arguments and implements grace periods.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone

from cluster.drivers import messages
from cluster.drivers.base import Checkpoint, CloudBusy, CloudError, OperationRefused, ServerNotFound, cloud, proceed
from cluster.models import Draining
from cluster.models.balancing import MAX_PORT, MAX_WEIGHT

# A year, in seconds.
MAX_GRACE_PERIOD = 365 * 24 * 3600


class BalancingPoolNotFound(CloudError):
    def __init__(self, pool: str) -> None:
        super().__init__(messages.BALANCING_POOL_NOT_FOUND.fill(pool=pool))


class MemberDraining(CloudBusy):
    """The grace period of a server that is leaving a pool is not over; it ends at ``until``."""

    def __init__(self, server: str, pool: str, connections: int | None, until: datetime) -> None:
        message = messages.MAY_BE_CONNECTED if connections is None else messages.STILL_CONNECTED
        super().__init__(message.fill(server=server, number=connections, pool=pool, time=f"{until:%H:%M:%S}"))
        self.until = until


@dataclass(frozen=True)
class BalancerPool:
    """A pool; ``load_balancer`` is the UUID of its load balancer, or None in the embedded cloud."""

    uuid: str
    name: str
    load_balancer: str | None = None


@dataclass(frozen=True)
class PoolMember:
    """A member of a pool.

    ``server`` is a UUID, or None for a member that was not added by the site. ``connections`` is the number of open
    connections, or None if the pool does not report it. A member with ``weight`` 0 gets no new connections.
    """

    server: str | None
    port: int
    weight: int
    connections: int | None = None
    address: str | None = None


class Balancer(ABC):
    """The base class of drivers of load balancers; `balancer` returns the one of the current cloud.

    A pool is identified by its UUID or its name, a server by its UUID. Every call is idempotent, also if several
    processes make it: a server has at most one member in the pool. After a crash the call can be repeated without
    stored progress. Every call returns when the load balancer has completed the change. Long calls call the
    ``checkpoint`` outside of any transaction, as those of `Cloud` do.

    All calls raise a `CloudError` with a message for users:

    - `BalancingPoolNotFound`: there is no such pool.
    - `CloudBusy`: another request is changing the load balancer, or connections are still open (`MemberDraining`).
      The caller may repeat the call later. An action that raises the error is retried.
    - `OperationRefused`: the server is in the pool with another port or has no address there, the load balancer is
      broken, or an argument is out of its range.
    - `CloudUnavailable`, `CloudMisconfigured`, `OperationFailed`: as in `Cloud`.
    """

    @abstractmethod
    def find_pool(self, pool: str) -> BalancerPool:
        """Return a pool by its UUID or name. Raises: `BalancingPoolNotFound`."""

    @abstractmethod
    def members(self, pool: str) -> list[PoolMember]:
        """Return all members, including those whose server was deleted."""

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
        """Add a server to a pool. If it is a member already, even one that is leaving, set its weight.

        Args:
            port: the port on which the server accepts connections, 1 to 65535.
            weight: its share of new connections, 0 to 256.
            subnet: the id or name of the subnet of the server's address, in clouds with subnets; by default the subnet
                of the load balancer's own address.

        Raises:
            ServerNotFound: there is no such server.
        """

    @abstractmethod
    def remove_member(self, pool: str, server: str, grace_period: float = 0, checkpoint: Checkpoint = proceed) -> None:
        """Remove a server from a pool, if it is a member. The server may have been deleted already.

        With a ``grace_period``, in seconds, the first call stops new connections. Calls raise `MemberDraining` until
        no connection is open or the period is over, and then remove the server. The period begins with the first call
        of any process, and lasts to its end if the pool does not report connections. Without a grace period, open
        connections are closed.

        An action is retried at most `settings.ACTION_RETRIES` times. If the grace period is longer than these pauses,
        the action must defer itself until ``MemberDraining.until``.
        """


def balancer() -> Balancer:
    """Return the driver of the current cloud's load balancers.

    Raises:
        CloudMisconfigured: the cloud driver does not support load balancers.
    """
    return cloud().make_balancer()


class DrainingBalancer(Balancer, ABC):
    """A balancer that stores the beginning of each grace period as a `Draining` row."""

    def add_member(
        self,
        pool: str,
        server: str,
        port: int,
        weight: int = 1,
        subnet: str | None = None,
        checkpoint: Checkpoint = proceed,
    ) -> PoolMember:
        require_range("port", port, 1, MAX_PORT)
        require_range("weight", weight, 0, MAX_WEIGHT)
        balancer_pool, uuid = self.find_pool(pool), checked_uuid(server)
        # First, so that a later removal begins a new grace period.
        end_draining(balancer_pool, uuid)
        return self.write_member(balancer_pool, uuid, port, weight, subnet, checkpoint)

    def remove_member(self, pool: str, server: str, grace_period: float = 0, checkpoint: Checkpoint = proceed) -> None:
        require_range("grace_period", grace_period, 0, MAX_GRACE_PERIOD)
        balancer_pool, uuid = self.find_pool(pool), checked_uuid(server)
        if grace_period:
            self.require_drained(balancer_pool, uuid, grace_period, checkpoint)
        self.delete_member(balancer_pool, uuid, checkpoint)
        end_draining(balancer_pool, uuid)

    def require_drained(self, pool: BalancerPool, server: str, grace_period: float, checkpoint: Checkpoint) -> None:
        """Raise `MemberDraining` if a server still has connections and its grace period is not over."""
        draining, _ = Draining.objects.get_or_create(pool=pool.uuid, server=server)
        member = self.drain(pool, server, checkpoint)
        until = draining.since + timedelta(seconds=grace_period)
        if member is not None and member.connections != 0 and timezone.now() < until:
            raise MemberDraining(server, pool.name, member.connections, until)

    @abstractmethod
    def write_member(
        self, pool: BalancerPool, server: str, port: int, weight: int, subnet: str | None, checkpoint: Checkpoint
    ) -> PoolMember:
        """Add a server to a pool, or set the weight of its member. Raises: as `add_member`."""

    @abstractmethod
    def drain(self, pool: BalancerPool, server: str, checkpoint: Checkpoint) -> PoolMember | None:
        """Stop new connections to a server, and return its member with its open connections, if it is a member."""

    @abstractmethod
    def delete_member(self, pool: BalancerPool, server: str, checkpoint: Checkpoint) -> None:
        """Remove a server from a pool, if it is a member."""


def end_draining(pool: BalancerPool, server: str) -> None:
    Draining.objects.filter(pool=pool.uuid, server=server).delete()


def require_range(name: str, value: float, minimum: float, maximum: float) -> None:
    if not minimum <= value <= maximum:
        raise OperationRefused(messages.OUTSIDE_RANGE.fill(option=name, value=value, minimum=minimum, maximum=maximum))


def checked_uuid(server: str) -> str:
    try:
        return str(UUID(server))
    except ValueError as malformed:
        raise ServerNotFound(server) from malformed
