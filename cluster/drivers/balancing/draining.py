"""The base of the balancers of all clouds: checks of arguments, and the time that a server has to leave a pool."""

from abc import ABC, abstractmethod
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from cluster.drivers.balancing.base import Balancer, BalancerPool, MemberDraining, PoolMember
from cluster.drivers.base import Checkpoint, OperationRefused, ServerNotFound, proceed
from cluster.models import Draining
from cluster.models.balancing import HEAVIEST, LAST_PORT

# A year: what is larger is a mistake.
LONGEST = 365 * 24 * 3600


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
