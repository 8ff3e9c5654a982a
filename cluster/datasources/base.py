"""The interface of data sources (`Datasource`), from which strategies read metrics."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from django.conf import settings
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from watcher_site.refusals import Refused

# The metrics of strategies, with their units.
METRICS = {
    "host_cpu_usage": "%",
    "host_ram_usage": "KiB",
    "host_outlet_temp": "°C",
    "host_inlet_temp": "°C",
    "host_airflow": "CFM",
    "host_power": "W",
    "instance_cpu_usage": "%",
    "instance_ram_usage": "MB",
    "instance_ram_allocated": "MB",
    "instance_root_disk_size": "GB",
    "instance_l3_cache_usage": "bytes",
}
AGGREGATES = ("mean", "min", "max", "count")


class DatasourceError(Refused):
    """The data source does not respond, or its response is unusable; the message names it and the reason."""


@dataclass(frozen=True)
class Reading:
    """A query to a data source: one aggregate of a metric for each resource, over ``period`` seconds.

    The period ends ``ago`` seconds before now. ``granularity`` is the interval in seconds of the values that are
    aggregated, if the data source derives them from finer samples. ``required`` means that the strategy cannot run
    without it.
    """

    metric: str
    period: float
    aggregate: str = "mean"
    granularity: float = 300
    ago: float = 0
    required: bool = True


class Datasource(ABC):
    """The base class of data sources. Servers are identified by UUID, compute nodes by UUID or host name."""

    name: ClassVar[str]

    @abstractmethod
    def read(self, reading: Reading) -> Mapping[str, float]:
        """Return the aggregate of each resource with samples in the period, by one request for all resources.

        Raises:
            DatasourceError: the request failed.
        """

    @abstractmethod
    def find_metrics(self) -> set[str]:
        """Return the `METRICS` with a current sample in the data source.

        Raises:
            DatasourceError: the request failed.
        """

    def find_misconfiguration(self) -> str:
        """Return the first error in the settings of the data source, found without a request, or ""."""
        return ""


@cache
def datasource() -> Datasource:
    """Return the process's data source of `settings.DATASOURCE`."""
    source: Datasource = import_string(settings.DATASOURCE)()
    return source


def clear_datasource_cache(*, setting: str, **_: object) -> None:
    if setting.startswith(("DATASOURCE", "PROMETHEUS", "GNOCCHI", "OPENSTACK_CLOUD")):
        datasource.cache_clear()


setting_changed.connect(clear_datasource_cache)
