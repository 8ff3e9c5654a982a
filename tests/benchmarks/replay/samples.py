"""The samples of the replayed day, up to the current time of the replay."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import ClassVar

from django.utils import timezone

from cluster.datasources.base import Reading
from cluster.datasources.stored import StoredSamples


class ReplayedSamples(StoredSamples):
    """The data source ``stored`` at the time ``now``: later samples, which are in the table, are ignored."""

    name = "replayed"
    now: ClassVar[datetime] = timezone.now()

    def read(self, reading: Reading) -> Mapping[str, float]:
        # A sample of this time belongs to the period, regardless of the duration of the query.
        passed = (timezone.now() - self.now) / timedelta(seconds=1)
        return super().read(replace(reading, ago=reading.ago + passed - 1))
