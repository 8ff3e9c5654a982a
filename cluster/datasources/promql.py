"""The Prometheus query of each metric, in the metric's unit.

The series are those of node_exporter and of Ceilometer, as in Watcher (docs/metrics.md, "Prometheus"). Any other
series holds the metric itself, in its unit.
"""

from cluster.datasources.base import METRICS, Reading

NODE_CPU, AVAILABLE, TOTAL = "node_cpu_seconds_total", "node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes"
SERVER_CPU = "ceilometer_cpu"
IDLE = 'mode="idle",'
SERIES = {
    **{metric: metric for metric in METRICS},
    "host_cpu_usage": NODE_CPU,
    "host_ram_usage": AVAILABLE,
    "instance_cpu_usage": SERVER_CPU,
    "instance_ram_usage": "ceilometer_memory_usage",
}
FUNCTIONS = {"mean": "avg", "min": "min", "max": "max", "count": "count"}
# What is counted there is idle: the most use is the least of it.
INVERTED = {"mean": "avg", "min": "max", "max": "min", "count": "count"}
# How many times a granularity the means over it are looked at, to find the largest.
LOOKS = 4


def expression(reading: Reading, series: str, label: str) -> str:
    """Return the query that answers a reading: one number for each value of the label.

    Of `SERVER_CPU` it is the use in percent of one vcpu, as the series does not tell how many a server has.
    """
    if reading.aggregate != "count":
        if series == NODE_CPU:
            return f"100 - 100 * {rates(reading, NODE_CPU, label, INVERTED, IDLE)}"
        if series == SERVER_CPU:
            return f"{rates(reading, SERVER_CPU, label, FUNCTIONS)} / 1e7"
        if series == AVAILABLE:
            most = f"max by ({label}) (max_over_time({selector(reading, TOTAL, label)}))"
            free = f"max by ({label}) ({INVERTED[reading.aggregate]}_over_time({selector(reading, AVAILABLE, label)}))"
            return f"({most} - {free}) / 1024"
    return f"max by ({label}) ({FUNCTIONS[reading.aggregate]}_over_time({selector(reading, series, label)}))"


def rates(reading: Reading, series: str, label: str, functions: dict[str, str], filtered: str = "") -> str:
    """Return how fast a counter grew over the period: its mean, or the most or least of any granularity within it."""
    window = reading.granularity
    if reading.aggregate == "mean" or not 0 < window < reading.period:
        return f"avg by ({label}) (rate({selector(reading, series, label, filtered=filtered)}))"
    rate = f"avg by ({label}) (rate({selector(reading, series, label, window, filtered)}))"
    looks = f"[{duration(reading.period - window)}:{duration(window / LOOKS)}]"
    return f"{functions[reading.aggregate]}_over_time({rate}{looks})"


def selector(reading: Reading, series: str, label: str, window: float | None = None, filtered: str = "") -> str:
    offset = f" offset {duration(reading.ago)}" if reading.ago else ""
    return f'{series}{{{filtered}{label}!=""}}[{duration(window or reading.period)}]{offset}'


def duration(seconds: float) -> str:
    return f"{max(round(seconds * 1000), 1)}ms"
