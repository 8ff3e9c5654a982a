"""The samples of the day that is replayed, at the time that the replay has come to."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import ClassVar

from django.utils import timezone

from cluster.datasources.base import Reading
from cluster.datasources.stored import StoredSamples


class ReplayedSamples(StoredSamples):
    """Our own table, read as if it were `now`: what is measured later stands there already, and is not seen."""

    name = "replayed"
    now: ClassVar[datetime] = timezone.now()

    def read(self, reading: Reading) -> Mapping[str, float]:
        # A sample of this moment belongs to the period, however long the query takes.
        passed = (timezone.now() - self.now) / timedelta(seconds=1)
        return super().read(replace(reading, ago=reading.ago + passed - 1))
