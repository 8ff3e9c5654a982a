"""The durations of requests, compared with references."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from statistics import median

import orjson
import psycopg

from actions.models import Action
from tests.benchmarks.table import Line
from tests.benchmarks.web.client import Call, Client, with_password, with_token

ROUNDS = 150
WARM_UP = 20
SKIP = orjson.dumps(
    [
        {"op": "replace", "path": "/state", "value": "SKIPPED"},
        {"op": "add", "path": "/status_message", "value": "measured"},
    ]
)


def measure(client: Client, token: str, database: str) -> list[Line]:
    """Return a line for each requirement. Each round runs all measurements in turn."""
    with psycopg.connect(database) as connection:
        turns = turns_of(client, token, connection)
        seconds: dict[str, list[float]] = defaultdict(list)
        for number in range(WARM_UP + ROUNDS):
            for name, turn in turns.items():
                taken = turn()
                if number >= WARM_UP:
                    seconds[name].append(taken)
    return lines({name: 1000 * median(taken) for name, taken in seconds.items()})


def turns_of(client: Client, token: str, connection: psycopg.Connection) -> dict[str, Callable[[], float]]:
    """Return the measurements of a round, as functions that return seconds."""
    uuids = Action.objects.order_by("-pk").values_list("uuid", flat=True)
    patches, reads, commits = iter(uuids), iter(uuids.reverse()), iter(uuids.values_list("pk", flat=True))
    own, password = with_token(token), with_password()
    # A request directly after a long list takes longer: one that is not reported separates the lists from the others.
    calls: dict[str, Callable[[], Call]] = {
        "raw 1000": lambda: Call("/reference/actions?limit=1000"),
        "actions 1000": lambda: Call("/v1/actions/detail?limit=1000", own),
        "raw 100": lambda: Call("/reference/actions?limit=100"),
        "actions 100": lambda: Call("/v1/actions/detail?limit=100", own),
        "raw plans": lambda: Call("/reference/action_plans?limit=100"),
        "plans": lambda: Call("/v1/action_plans/detail?limit=100", own),
        "separator": lambda: Call("/reference/bare"),
        "bare": lambda: Call("/reference/bare"),
        "query": lambda: Call("/reference/query"),
        "one with a token": lambda: Call(f"/v1/actions/{next(reads)}", own),
        "one with a password": lambda: Call(f"/v1/actions/{next(reads)}", password),
        "skip": lambda: Call(f"/v1/actions/{next(patches)}", own, "PATCH", SKIP),
    }
    turns = {name: lambda call=call: client.seconds(call()) for name, call in calls.items()}
    return turns | {"commit": lambda: commit(connection, commits)}


def commit(connection: psycopg.Connection, keys: Iterator[int]) -> float:
    begin = time.perf_counter()
    connection.execute("UPDATE actions_action SET attempt = attempt WHERE id = %s", [next(keys)])
    connection.commit()
    return time.perf_counter() - begin


def lines(took: dict[str, float]) -> list[Line]:
    bare, query = took["bare"], took["query"] - took["bare"]
    return [
        Line("GET /v1/actions/detail?limit=1000", took["actions 1000"], "raw rows", took["raw 1000"], 3),
        Line("GET /v1/actions/detail?limit=100", took["actions 100"], "raw rows", took["raw 100"], 3, "bare", bare),
        Line(
            "GET /v1/action_plans/detail?limit=100",
            took["plans"],
            "raw rows",
            took["raw plans"],
            3,
            "bare + query",
            bare + query,
        ),
        Line("GET /v1/actions/{uuid}, token", took["one with a token"], "bare", bare, 2),
        Line("GET /v1/actions/{uuid}, HTTP Basic", took["one with a password"], "bare", bare, 2),
        Line("PATCH /v1/actions/{uuid}, skip", took["skip"], "bare", bare, 4, "COMMIT", took["commit"]),
    ]
