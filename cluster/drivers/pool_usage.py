"""Account for pools: the one function that computes the numbers of a pool of the embedded cloud from its volumes."""

from collections.abc import Iterable

from django.utils import timezone

from cluster.models import Pool, Volume
from cluster.models.storage import ACCOUNTS

BATCH = 500


def account(pools: Iterable[Pool]) -> None:
    """Set the capacity figures of locked pools from their volumes, and write the pools that changed."""
    pools = [pool for pool in pools if not pool.deleted_at]
    held = Volume.objects.held_by(pools)
    changed = []
    for pool in pools:
        before = [getattr(pool, name) for name in ACCOUNTS]
        pool.account(*held[pool.pk])
        if before != [getattr(pool, name) for name in ACCOUNTS]:
            pool.updated_at = timezone.now()
            changed.append(pool)
    Pool.objects.bulk_update(changed, [*ACCOUNTS, "updated_at"], batch_size=BATCH)
