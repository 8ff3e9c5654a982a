"""All measurements of the benchmark, in one run."""

from django.db import connection

from tests.benchmarks import applier, growth, notifications, rows, workers
from tests.benchmarks.table import Line
from tests.benchmarks.web import client as web
from tests.benchmarks.web import console, keystone, request_metrics, requests, servers


def measure(database: str) -> list[Line]:
    token = rows.person()
    rows.fill()
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    with web.served() as client:
        lines = requests.measure(client, token, database)
    lines += keystone.measure(token) + request_metrics.measure(token) + servers.measure(token)
    lines += applier.measure(database) + growth.measure(database) + workers.measure(database)
    # The pages come last, as their rows would change what the others cost.
    return [*lines, *notifications.measure(database), *console.measure()]
