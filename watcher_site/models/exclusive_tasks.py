"""Tasks of a site that one process at a time carries out."""

from datetime import timedelta
from typing import Any, Self
from uuid import UUID, uuid4

from django.db import models
from django.db.models import Q
from django.utils import timezone

# The period after which a run without a renewal is considered to be interrupted.
LEASE = timedelta(minutes=5)


class ExclusiveTask(models.Model):
    """The single row of a site for one task: ``holder`` identifies the current run, until ``held_until`` at most.

    Subclasses store the result of the last run.
    """

    ONLY = 1

    holder = models.UUIDField(null=True)
    held_until = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    @classmethod
    def current(cls) -> Self:
        return cls._default_manager.get_or_create(pk=cls.ONLY)[0]

    @classmethod
    def claim_if(cls, is_due: Q) -> UUID | None:
        """Return the key of a new run, unless another one is in progress or the row does not meet a condition.

        The database decides between concurrent claims.
        """
        now, holder = timezone.now(), uuid4()
        is_free = Q(held_until=None) | Q(held_until__lt=now)
        rows = cls._default_manager.filter(is_due, is_free, pk=cls.current().pk)
        return holder if rows.update(holder=holder, held_until=now + LEASE) else None

    @classmethod
    def renew(cls, holder: UUID) -> bool:
        """Extend a run, and return whether it is still the current one."""
        return bool(cls._default_manager.filter(holder=holder).update(held_until=timezone.now() + LEASE))

    @classmethod
    def release(cls, holder: UUID, **columns: Any) -> bool:
        """End a run with these new values, and return whether it was still the current one."""
        return bool(cls._default_manager.filter(holder=holder).update(holder=None, held_until=None, **columns))
