"""The result of the last complete reading of the cloud, and the process that is reading it."""

from datetime import datetime, timedelta
from typing import Self
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.utils import timezone

from watcher_site.messages import STATUS_MESSAGE_LENGTH, cut
from watcher_site.models import ExclusiveTask


class Synchronization(ExclusiveTask):
    """The single row of a site whose runs are the complete readings of the cloud.

    ``succeeded_at`` is the beginning of the last successful reading, ``problem`` the failure of the last reading.
    """

    succeeded_at = models.DateTimeField(null=True)
    problem = models.CharField(max_length=STATUS_MESSAGE_LENGTH, default="", blank=True)
    project = models.CharField(
        max_length=255,
        default="",
        db_default="",
        blank=True,
        help_text="id of the project of the site's login",
    )
    user = models.CharField(
        max_length=255, default="", db_default="", blank=True, help_text="id of the user of the site's login"
    )

    def __str__(self) -> str:
        return self.problem or f"succeeded at {self.succeeded_at}"

    @classmethod
    def lock(cls) -> Self:
        """Return the row, locked until the end of the transaction.

        A reading updates this row before it writes its contents. A caller that locks the row before writing a single
        object therefore writes either before or after the whole reading, and knows which.
        """
        return cls.objects.select_for_update(no_key=True).get(pk=cls.current().pk)

    def is_fresh(self, age: timedelta) -> bool:
        """Return whether the last reading succeeded and is more recent than ``age``."""
        return not self.problem and self.succeeded_at is not None and self.succeeded_at > timezone.now() - age

    @classmethod
    def claim(cls, age: timedelta = timedelta(0)) -> UUID | None:
        """Return the key of a new reading, unless another one is in progress or the last one is fresh by this age."""
        return cls.claim_if(~Q(problem="") | Q(succeeded_at=None) | Q(succeeded_at__lte=timezone.now() - age))

    @classmethod
    def succeed(cls, holder: UUID, began: datetime, project: str, user: str = "") -> bool:
        """Store the success of a reading, and return whether it was still the current one."""
        return cls.release(holder, succeeded_at=began, problem="", project=project, user=user)

    @classmethod
    def fail(cls, holder: UUID, problem: str) -> None:
        cls.release(holder, problem=cut(problem))
