"""The data source of samples in the site's database."""

from collections.abc import Mapping
from datetime import timedelta

from django.db.models import Avg, Count, Max, Min
from django.utils import timezone

from cluster.datasources.base import METRICS, Datasource, Reading
from cluster.models import Sample

FUNCTIONS = {"mean": Avg, "min": Min, "max": Max, "count": Count}


class StoredSamples(Datasource):
    """Samples in the site's database. Each reading is one query, which aggregates them by resource."""

    name = "stored"

    def read(self, reading: Reading) -> Mapping[str, float]:
        end = timezone.now() - timedelta(seconds=reading.ago)
        begin = end - timedelta(seconds=reading.period)
        samples = Sample.objects.filter(metric=reading.metric, time__gt=begin, time__lte=end)
        aggregates = samples.values_list("resource").annotate(aggregate=FUNCTIONS[reading.aggregate]("value"))
        return {str(resource): float(value) for resource, value in aggregates.order_by()}

    def find_metrics(self) -> set[str]:
        # One index lookup for each metric is faster than one query over all samples.
        return {metric for metric in METRICS if Sample.objects.filter(metric=metric).exists()}
