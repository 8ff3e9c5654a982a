"""A Prometheus server for the tests, with series that begin before the current time and end after it."""

import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# How far the series extend before and after the start of the server, and the interval of their samples; in seconds.
REACH, STEP = 3600, 15
START_SECONDS = 120
READY = "Server is ready to receive web requests."


@dataclass(frozen=True)
class Series:
    """One series: ``value`` maps the seconds after the start of the server to a sample, from ``begin`` to ``end``."""

    name: str
    labels: Mapping[str, str]
    value: Callable[[float], float]
    begin: int = -REACH
    end: int = REACH


def counter(rate: float) -> Callable[[float], float]:
    """Return the values of a counter that grows by ``rate`` a second."""
    return lambda seconds: (seconds + REACH) * rate


def constant(value: float) -> Callable[[float], float]:
    return lambda seconds: value


def alternating(*values: float) -> Callable[[float], float]:
    return lambda seconds: values[int(seconds // STEP) % len(values)]


def open_metrics(series: list[Series]) -> str:
    now = time.time()
    lines = []
    for name in sorted({one.name for one in series}):
        lines.append(f"# TYPE {name} unknown")
        for one in (found for found in series if found.name == name):
            labels = ",".join(f'{label}="{value}"' for label, value in one.labels.items())
            lines += [
                f"{name}{{{labels}}} {one.value(seconds)} {now + seconds:.3f}"
                for seconds in range(one.begin, one.end, STEP)
            ]
    return "\n".join([*lines, "# EOF", ""])


@contextmanager
def prometheus(folder: Path, series: list[Series], web_configuration: str = "") -> Iterator[int]:
    """Serve these series and yield the port of 127.0.0.1."""
    (folder / "series").write_text(open_metrics(series))
    (folder / "configuration.yml").write_text("global: {}\n")
    (folder / "web.yml").write_text(web_configuration)
    make_blocks = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "series", "data"]
    subprocess.run(make_blocks, cwd=folder, check=True, capture_output=True)
    port = free_port()
    command = [
        "prometheus",
        "--config.file=configuration.yml",
        "--storage.tsdb.path=data",
        "--web.config.file=web.yml",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, cwd=folder, stderr=log) as process:
        try:
            wait_until_ready(process, folder / "log")
            yield port
        finally:
            process.terminate()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def wait_until_ready(process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Wait until the log of the server says that it is ready, as the server may require credentials.

    Raises:
        RuntimeError: the server ended or is not ready in time; the message is its log.
    """
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        if READY in log.read_text():
            return
        time.sleep(0.05)
    raise RuntimeError(f"Prometheus is not ready: {log.read_text()}")
