"""Load balancers of a preflight, on which every operation succeeds."""

from cluster.drivers.balancing import Balancer, BalancerPool, PoolMember
from cluster.drivers.base import Checkpoint, proceed


class ForeseenBalancer(Balancer):
    """A balancer without state: the pools of a cloud need not be in our tables, so none is read or changed."""

    def find_pool(self, pool: str) -> BalancerPool:
        return BalancerPool(pool, pool)

    def members(self, pool: str) -> list[PoolMember]:
        return []

    def add_member(
        self,
        pool: str,
        server: str,
        port: int,
        weight: int = 1,
        subnet: str | None = None,
        checkpoint: Checkpoint = proceed,
    ) -> PoolMember:
        return PoolMember(server, port, weight)

    def remove_member(self, pool: str, server: str, grace_period: float = 0, checkpoint: Checkpoint = proceed) -> None:
        pass
