"""The duration of a validation of a cached Keystone token, compared with a read with a token of the site."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from actions.models import Action
from tests.benchmarks.table import Line
from tests.benchmarks.web.client import Call, served, with_token
from tests.watcher_site.keystone.identity import Keystone

ROUNDS = 300
WARM_UP = 20
# The services in the catalog of a token: as many as a large cloud has.
SERVICES = 20


@contextmanager
def identity() -> Iterator[Keystone]:
    """Serve Keystone on loopback during the context."""
    server = Keystone()
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def catalog() -> list[dict[str, Any]]:
    address = {"region": "RegionOne", "region_id": "RegionOne", "url": "https://cloud.example.org:8774/v2.1"}
    endpoints = [{"id": "0" * 32, "interface": name, **address} for name in ("public", "internal", "admin")]
    return [
        {"id": "0" * 32, "type": f"type-{n}", "name": f"name-{n}", "endpoints": endpoints} for n in range(SERVICES)
    ]


def measure(token: str) -> list[Line]:
    """Return the line of the validation. Each round measures both kinds of tokens and the bare view in turn."""
    uuids = Action.objects.order_by("pk").values_list("uuid", flat=True)
    reads = iter(uuids[: WARM_UP + ROUNDS])
    seconds: dict[str, list[float]] = defaultdict(list)
    with identity() as keystone, TemporaryDirectory() as folder:
        file = keystone.write_options(Path(folder) / "keystone.conf")
        validated = keystone.issue("rosa", "admin", catalog=catalog())
        with served(WATCHER_AUTH="local,keystone", WATCHER_KEYSTONE_CONFIG=str(file)) as client:
            for number in range(WARM_UP + ROUNDS):
                calls = {
                    "bare": Call("/reference/bare"),
                    "validated": Call("/reference/validated", with_token(validated)),
                    "read": Call(f"/v1/actions/{next(reads)}", with_token(token)),
                }
                for name, call in calls.items():
                    taken = client.seconds(call)
                    if number >= WARM_UP:
                        seconds[name].append(taken)
    took = {name: 1000 * median(taken) for name, taken in seconds.items()}
    work = f"a cached token of Keystone, {SERVICES} services"
    return [Line(work, took["validated"] - took["bare"], "GET /v1/actions/{uuid}, token", took["read"], 0.2)]
