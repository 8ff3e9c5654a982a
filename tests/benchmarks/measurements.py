"""All measurements of the benchmark, in one run."""

from collections.abc import Iterator

from django.db import connection

from tests.benchmarks import applier, growth, notifications, rows, workers
from tests.benchmarks.table import Line
from tests.benchmarks.web import client as web
from tests.benchmarks.web import console, keystone, request_metrics, requests, servers


def measure(database: str) -> Iterator[list[Line]]:
    """Yield the lines of each part when it is measured."""
    token = rows.person()
    rows.fill()
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    with web.served() as client:
        yield requests.measure(client, token, database)
    yield keystone.measure(token) + request_metrics.measure(token)
    yield servers.measure(token)
    yield applier.measure(database) + growth.measure(database)
    yield workers.measure(database)
    yield notifications.measure(database)
    # The pages come last, as their rows would change what the others cost.
    yield console.measure()
