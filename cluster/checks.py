"""System checks of the settings of metrics and data sources."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ImproperlyConfigured

from cluster.datasources.base import METRICS, Datasource, datasource


@register()
def check_series(**_: Any) -> list[CheckMessage]:
    tables: dict[str, Mapping[str, str]] = {
        name: getattr(settings, name) for name in ("PROMETHEUS_METRICS", "GNOCCHI_METRICS")
    }
    known = ", ".join(METRICS)
    return [
        Error(f"WATCHER_{name}: {stray} is not a metric; there are {known}.", id="cluster.E001")
        for name, table in tables.items()
        for stray in sorted(table.keys() - METRICS.keys())
    ]


@register()
def check_datasource(**_: Any) -> list[CheckMessage]:
    """Refuse incomplete settings of the data source. `watcher_site.checks` reports one that cannot be loaded.

    Raises:
        ImproperlyConfigured: the settings are incomplete. Every command then ends as for an invalid variable.
    """
    try:
        source = datasource()
    except Exception:
        return []
    if isinstance(source, Datasource) and (problem := source.find_misconfiguration()):
        raise ImproperlyConfigured(f"WATCHER_DATASOURCE: {source.name} needs a cloud. {problem}")
    return []
