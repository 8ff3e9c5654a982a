"""The registries of metrics: of the web process with all its workers, and of the site with the gauges of tables."""

import platform
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib import metadata

import django
from django.apps import apps
from django.conf import settings
from django.utils.module_loading import import_string
from prometheus_client import REGISTRY, CollectorRegistry, Metric, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from watcher_site import plugins
from watcher_site.monitoring import metrics
from watcher_site.monitoring.definitions import DEFINITIONS, Definition, table_gauge
from watcher_site.monitoring.shared_folder import shared_folder

BUILD = table_gauge(
    "watcher_build_info", "The versions that the process runs; always 1", "version", "python", "django"
)
# Of these, the minimum of all workers is exported, and of others the sum.
LEAST = {"process_start_time_seconds", "process_max_fds"}


class BuildInfo(Collector):
    """The versions of the site, of Python and of Django."""

    def collect(self) -> Iterator[Metric]:
        yield BUILD.of({(metadata.version("watcher-site"), platform.python_version(), django.get_version()): 1})


class WorkerProcesses(Collector):
    """The metrics ``process_…`` of all workers of this web process, combined."""

    def collect(self) -> Iterable[Metric]:
        families: dict[str, Metric] = {}
        values: dict[str, list[float]] = defaultdict(list)
        for pid in shared_folder.living():
            for family in ProcessCollector(pid=lambda pid=pid: pid, registry=None).collect():  # type: ignore[misc]
                families[family.name] = family
                values[family.name].append(family.samples[0].value)
        for name, family in families.items():
            kind = CounterMetricFamily if family.type == "counter" else GaugeMetricFamily
            value = min(values[name]) if name in LEAST else sum(values[name])
            yield kind(name, family.documentation, value=value)


REGISTRY.register(BuildInfo())


def all_metrics() -> list[Definition]:
    """Return the definitions of all metrics of the site, by name."""
    for path in settings.TABLE_GAUGES:
        import_string(path)
    return sorted(DEFINITIONS)


def initialize_counters() -> None:
    """Create counters with few labels at 0: Prometheus does not count an increase from no value to 1."""
    for model in apps.get_models():
        for field in getattr(model, "guard_fields", ())[:1]:
            for state, _ in model._meta.get_field(field).flatchoices:  # type: ignore[union-attr]
                metrics.state_changes.labels(model._meta.model_name, state)
    for name in plugins.load("ACTION_TYPES"):
        for by_type in (metrics.action_retries, metrics.action_recoveries, metrics.actions_given_up):
            by_type.labels(name)
    for metric, label_values in metrics.KNOWN_LABELS.items():
        for labels in label_values:
            metric.labels(*labels)


def web_registry() -> CollectorRegistry:
    """Return the registry of the web process, with all its workers."""
    registry = CollectorRegistry()
    if shared_folder.path:
        MultiProcessCollector(registry)
        registry.register(WorkerProcesses())
        registry.register(BuildInfo())
    else:
        registry.register(REGISTRY)
    return registry


def site_registry() -> CollectorRegistry:
    """Return the registry of ``/metrics``: the gauges of the tables, and the metrics of the web process.

    If the web process has a port for its metrics, they are only there: behind the address of the site, each request
    may reach another process, with other counts.
    """
    if "web" in settings.METRICS_PORTS:
        registry = CollectorRegistry()
        registry.register(BuildInfo())
    else:
        initialize_counters()
        registry = web_registry()
    for path in settings.TABLE_GAUGES:
        registry.register(import_string(path)())
    return registry
