"""Concurrent requests of many clients to a web server with many threads: durations, and the number of errors."""

import http.client
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from statistics import quantiles

from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from actions.models import Action
from tests.benchmarks import rows
from tests.benchmarks.table import Line
from tests.benchmarks.web.client import free_port, wait_for, with_token
from tests.benchmarks.web.servers import served

WORKERS, THREADS = 2, 32
CLIENTS, REQUESTS = 200, 15
# The timeout of a client, in seconds.
PATIENCE = 120
# The limit of the 99th percentile of the durations, as a multiple of their median.
SLOWEST = 5
SUCCESS = 200


def measure(token: str) -> list[Line]:
    """Return the lines of the durations and of the errors. The clients share the processors with the server."""
    port = free_port()
    command = ["gunicorn", "--config", "python:watcher_site.gunicorn", "--bind", f"127.0.0.1:{port}"]
    command += ["--workers", str(WORKERS), "--threads", str(THREADS)]
    calls = requests(token)
    with served(command):
        wait_for(port)
        begin = time.perf_counter()
        with ThreadPoolExecutor(CLIENTS) as pool:
            found = pool.map(lambda number: run(port, calls, number), range(CLIENTS))
            answers = [answer for answers in found for answer in answers]
        took = time.perf_counter() - begin
    percentiles = quantiles([1000 * seconds for seconds, _problem in answers], n=100)
    problems = [problem for _seconds, problem in answers if problem]
    for problem in sorted(set(problems)):
        print(f"{problems.count(problem)} times: {problem}")  # noqa: T201
    work = f"{CLIENTS} clients, {WORKERS * THREADS} web threads"
    return [
        Line(f"{work}: errors", len(problems), "requests", len(answers), 0, unit=""),
        Line("  requests per second", len(answers) / took, "", 0, 0, unit="/s", at_least=True),
        Line("  duration, 99th percentile", percentiles[98], "median", percentiles[49], SLOWEST),
    ]


def requests(token: str) -> list[tuple[str, Mapping[str, str]]]:
    """Return the requests that the clients send in turn: of the API, and of the console with a session."""
    browser = Client()
    browser.force_login(User.objects.get(username=rows.NAME))
    session = {"Cookie": f"{settings.SESSION_COOKIE_NAME}={browser.cookies[settings.SESSION_COOKIE_NAME].value}"}
    uuids = Action.objects.order_by("pk").values_list("uuid", flat=True)
    api = with_token(token)
    return [
        *((f"/v1/actions/{uuid}", api) for uuid in islice(uuids, 5)),
        ("/v1/actions?limit=20&sort_key=updated_at&sort_dir=desc", api),
        ("/v1/action_plans/detail?limit=20", api),
        ("/console/", session),
        ("/console/plans/?per_page=25", session),
        ("/console/actions/?state=PENDING&per_page=25", session),
    ]


def run(port: int, calls: list[tuple[str, Mapping[str, str]]], number: int) -> list[tuple[float, str]]:
    """Send the requests of one client, and return the duration of each, and its problem or an empty text."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    answers = []
    for place in range(REQUESTS):
        path, headers = calls[(number + place) % len(calls)]
        begin, problem = time.perf_counter(), ""
        try:
            connection.request("GET", path, headers=dict(headers))
            response = connection.getresponse()
            body = response.read()
            if response.status != SUCCESS:
                problem = f"{path.partition('?')[0]}: {response.status} {body[:200].decode(errors='replace')}"
        except (OSError, http.client.HTTPException) as error:
            problem = f"{type(error).__name__}: {error}"
            connection.close()
        answers.append((time.perf_counter() - begin, problem))
    return answers
