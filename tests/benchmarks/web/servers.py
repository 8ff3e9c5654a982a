"""The web server of the site in comparison with others: reads of one action, and the effect of slow clients."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from actions.models import Action
from tests.benchmarks.table import Line
from tests.benchmarks.web.client import Call, Client, free_port, wait_for, with_token

CLIENTS, READS, ROUNDS, THREADS = 4, 100, 5, 4
GUNICORN = ["gunicorn", "--config", "python:watcher_site.gunicorn", "--workers", "1", "--threads", str(THREADS)]
GRANIAN = ["granian", "--interface", "wsgi", "--http", "1", "--no-ws", "--access-log", "--workers", "1"]
SITE = "the site's worker"
SERVERS: dict[str, Callable[[int], list[str]]] = {
    SITE: lambda port: [*GUNICORN, "--bind", f"127.0.0.1:{port}"],
    "gthread": lambda port: [*GUNICORN, "--worker-class", "gthread", "--bind", f"127.0.0.1:{port}"],
    "granian": lambda port: [
        *GRANIAN,
        *("--blocking-threads", str(THREADS), "--port", str(port)),
        "watcher_site.wsgi:application",
    ],
}
ATTACKS = {
    "300 idle connections": (300, b""),
    "16 half heads": (16, b"GET /v1/goals HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Unfinished: ye"),
    "16 half bodies": (16, b"POST /v1/audits HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n%s\r\n{"),
}
LOOKS = 5
LONGEST_SECONDS = 8.0


@contextmanager
def served(command: list[str]) -> Iterator[int]:
    """Serve the site with a server of one process, and yield the id of its session."""
    process = subprocess.Popen(
        [sys.executable, "-m", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(60)


def processor_seconds(session: int) -> float:
    """Return the processor time of the processes of a session."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def reads(port: int, session: int, token: str) -> tuple[float, float]:
    """Return the number of reads of one action a second, and the processor time of each, in milliseconds."""
    uuids = Action.objects.values_list("uuid", flat=True)[:100]
    calls = [Call(f"/v1/actions/{uuid}", with_token(token)) for uuid in uuids]

    def read(number: int) -> None:
        client = Client(port)
        for place in range(number):
            client.seconds(calls[place % len(calls)])

    with ThreadPoolExecutor(CLIENTS) as pool:
        began, used = time.perf_counter(), processor_seconds(session)
        list(pool.map(read, [READS] * CLIENTS))
        took, used = time.perf_counter() - began, processor_seconds(session) - used
    return CLIENTS * READS / took, 1000 * used / (CLIENTS * READS)


def health(port: int) -> float:
    """Return the duration of the probe in milliseconds, at most `LONGEST_SECONDS`."""
    client = Client(port)
    client.connection.timeout = LONGEST_SECONDS
    try:
        return 1000 * client.seconds(Call("/healthz"))
    except OSError:
        return 1000 * LONGEST_SECONDS


def health_under(port: int, number: int, data: bytes) -> float:
    with ExitStack() as stack:
        for _ in range(number):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), LONGEST_SECONDS))
            connection.sendall(data)
        time.sleep(0.5)
        return median(health(port) for _ in range(LOOKS))


def measure(token: str) -> list[Line]:
    """Return the lines of all servers: that of the site has a limit, the others are for comparison."""
    rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in SERVERS}
    probes: dict[str, dict[str, float]] = {}
    with ExitStack() as stack:
        started = {}
        for name, command in SERVERS.items():
            port = free_port()
            started[name] = port, stack.enter_context(served(command(port)))
            wait_for(port)
            reads(*started[name], token)
        for _ in range(ROUNDS):
            for name, (port, session) in started.items():
                rounds[name].append(reads(port, session, token))
        for name, (port, _session) in started.items():
            probes[name] = {"alone": median(health(port) for _ in range(LOOKS))}
            for attack, (number, data) in ATTACKS.items():
                sent = data.replace(b"%s", f"X-Auth-Token: {token}\r\n".encode())
                probes[name][attack] = health_under(port, number, sent)
    rates = {name: median(rate for rate, _ in found) for name, found in rounds.items()}
    costs = {name: median(cost for _, cost in found) for name, found in rounds.items()}
    return [line for name in SERVERS for line in lines(name, rates, costs, probes[name])]


def lines(name: str, rates: dict[str, float], costs: dict[str, float], probes: dict[str, float]) -> list[Line]:
    read, is_own = "GET /v1/actions/{uuid}, 4 clients", name == SITE
    patience, longest = ("a second", 1000) if is_own else ("8 seconds", 1000 * LONGEST_SECONDS)
    return [
        Line(
            f"{read}, {name}",
            rates[name],
            "gthread",
            rates["gthread"],
            0.8 if is_own else 0,
            unit="requests/s",
            at_least=True,
        ),
        Line(f"{read}, processor, {name}", costs[name], "gthread", costs["gthread"], 1.25 if is_own else 100),
        *(
            Line(f"GET /healthz, {attack}, {name}", probes[attack], "alone", probes["alone"], 1, patience, longest)
            for attack in ATTACKS
        ),
    ]
