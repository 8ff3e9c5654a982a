"""The load balancer of the embedded cloud: pools, members and simulated connections in the site's tables."""

from heapq import heapify, heapreplace

from django.db import transaction

from cluster.drivers import messages
from cluster.drivers.balancing import BalancerPool, BalancingPoolNotFound, DrainingBalancer, PoolMember
from cluster.drivers.base import Checkpoint, OperationRefused, ServerNotFound
from cluster.models import BalancingMember, BalancingPool, Server


class EmbeddedBalancer(DrainingBalancer):
    """The load balancer of the embedded cloud. Changes of members first lock the row of the pool.

    `open_connections` and `close_connections` simulate traffic.
    """

    def find_pool(self, pool: str) -> BalancerPool:
        row = BalancingPool.objects.named(pool).first()
        if row is None:
            raise BalancingPoolNotFound(pool)
        return BalancerPool(str(row.uuid), row.name)

    def members(self, pool: str) -> list[PoolMember]:
        rows = BalancingMember.objects.filter(pool__uuid=self.find_pool(pool).uuid).select_related("server")
        return [make_pool_member(row) for row in rows]

    @transaction.atomic
    def write_member(
        self, pool: BalancerPool, server: str, port: int, weight: int, subnet: str | None, checkpoint: Checkpoint
    ) -> PoolMember:
        """Add a server to a pool, or set the weight of its member. The embedded cloud has no subnets."""
        locked = lock_pool(pool)
        row = find_member(locked, server)
        if row is None:
            server_row = Server.objects.present().filter(uuid=server).first()
            if server_row is None:
                raise ServerNotFound(server)
            row = BalancingMember.objects.create(pool=locked, server=server_row, port=port, weight=weight)
        elif row.port != port:
            raise OperationRefused(messages.OTHER_PORT.fill(server=server, pool=pool.name, port=row.port))
        elif row.weight != weight:
            row.weight = weight
            row.save(update_fields=["weight"])
        return make_pool_member(row)

    @transaction.atomic
    def drain(self, pool: BalancerPool, server: str, checkpoint: Checkpoint) -> PoolMember | None:
        row = find_member(lock_pool(pool), server)
        if row is None:
            return None
        if row.weight:
            row.weight = 0
            row.save(update_fields=["weight"])
        return make_pool_member(row)

    @transaction.atomic
    def delete_member(self, pool: BalancerPool, server: str, checkpoint: Checkpoint) -> None:
        BalancingMember.objects.filter(pool=lock_pool(pool), server__uuid=server).delete()

    @transaction.atomic
    def open_connections(self, pool: str, number: int) -> None:
        """Open connections, each on the member with the fewest in proportion to its weight.

        Raises:
            OperationRefused: no member has a weight above 0.
        """
        balancer_pool = self.find_pool(pool)
        rows = list(BalancingMember.objects.filter(pool=lock_pool(balancer_pool), weight__gt=0))
        if not rows:
            raise OperationRefused(f"Pool {balancer_pool.name} has no member that gets connections")
        heap = [(row.connections / row.weight, row.pk, row) for row in rows]
        heapify(heap)
        for _ in range(number):
            row = heap[0][2]
            row.connections += 1
            heapreplace(heap, (row.connections / row.weight, row.pk, row))
        BalancingMember.objects.bulk_update(rows, ["connections"])

    @transaction.atomic
    def close_connections(self, pool: str, number: int) -> None:
        """Close up to this number of connections, first those of members with the lowest weight."""
        balancer_pool = self.find_pool(pool)
        rows = list(
            BalancingMember.objects.filter(pool=lock_pool(balancer_pool), connections__gt=0).order_by("weight", "pk")
        )
        for row in rows:
            ended = min(number, row.connections)
            row.connections -= ended
            number -= ended
        BalancingMember.objects.bulk_update(rows, ["connections"])


def lock_pool(pool: BalancerPool) -> BalancingPool:
    found = BalancingPool.objects.present().select_for_update(no_key=True).filter(uuid=pool.uuid).first()
    if found is None:
        raise BalancingPoolNotFound(pool.name)
    row: BalancingPool = found
    return row


def find_member(pool: BalancingPool, server: str) -> BalancingMember | None:
    return BalancingMember.objects.filter(pool=pool, server__uuid=server).select_related("server").first()


def make_pool_member(row: BalancingMember) -> PoolMember:
    return PoolMember(str(row.server.uuid), row.port, row.weight, row.connections)
