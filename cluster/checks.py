"""System checks: what the settings say about metrics is about metrics that there are."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from cluster.datasources.base import METRICS


@register()
def check_series(**_: Any) -> list[CheckMessage]:
    strays = sorted(settings.PROMETHEUS_METRICS.keys() - METRICS.keys())
    known = ", ".join(METRICS)
    return [
        Error(f"PROMETHEUS_METRICS: {stray} is no metric; there are {known}.", id="cluster.E001") for stray in strays
    ]
