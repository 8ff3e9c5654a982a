"""Samples of metrics in the site's database."""

from django.db import models

METRIC_LENGTH = 64


class Sample(models.Model):
    """One value of a metric of one compute node or server, in the metric's unit (`cluster.datasources.base.METRICS`).

    ``resource`` is the UUID of the node or server. It is not a foreign key, because samples may be stored before the
    object, and stay after its deletion.
    """

    metric = models.CharField(max_length=METRIC_LENGTH)
    resource = models.UUIDField()
    time = models.DateTimeField()
    value = models.FloatField()

    class Meta:
        constraints = [
            # Its index serves the aggregate of all resources of a metric over a period.
            models.UniqueConstraint("metric", "time", "resource", name="sample_once"),
        ]

    def __str__(self) -> str:
        return f"{self.metric} of {self.resource}"
