"""Real processes serve their metrics: each on its own port, and all web workers together."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_server
from urllib.request import Request, urlopen

import pytest
from django.contrib.auth.models import User
from knox.models import AuthToken

from tests.broker import BROKER_URL, own_queues
from tests.builders import make_plan
from tests.processes import ROOT, command_environment, start_command, start_fresh_command
from tests.waiting import PATIENCE, wait_for
from tests.watcher_site.site_process import free_port_number
from watcher_site.models import Service

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


def read(port: int, path: str = "/metrics", **headers: str) -> str:
    answer = urlopen(Request(f"http://127.0.0.1:{port}{path}", headers=headers), timeout=PATIENCE)
    text: str = answer.read().decode()
    return text


def value_of(text: str, sample: str) -> float:
    found = re.search(rf"^{re.escape(sample)} (\S+)$", text, re.MULTILINE)
    return float(found.group(1)) if found else 0


def answers(port: int) -> bool:
    try:
        return bool(read(port, "/healthz"))
    except OSError:
        return False


@contextmanager
def web_process(**variables: str) -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    """Start gunicorn with two workers on the test database, and yield its port and its process."""
    port = free_port_number()
    settings = {"WATCHER_HTTPS": "false", "WATCHER_WEB_WORKERS": "2", "WATCHER_WEB_THREADS": "1"}
    process = start_web(subprocess.DEVNULL, PORT=str(port), **settings, **variables)
    try:
        wait_for(lambda: answers(port))
        yield port, process
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait(PATIENCE)


def start_web(stderr: int, **variables: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "gunicorn", "--config", "python:watcher_site.gunicorn"]
    environment = command_environment(variables)
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=stderr)


def children_of(pid: int) -> set[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return {int(child) for child in listed.split()}


def test_web_workers_share_counters_and_keep_the_counts_of_killed_workers(cloud_admin: User, tmp_path: Path) -> None:
    _, token = AuthToken.objects.create(cloud_admin)
    bearer = {"Authorization": f"Bearer {token}"}
    sample = 'watcher_http_requests_total{method="GET",status="200",view="watcher_site.api.resources.health.readyz"}'
    with web_process(TMPDIR=str(tmp_path)) as (port, process):
        wait_for(lambda: len(children_of(process.pid)) == 2)
        for _ in range(20):
            read(port, "/readyz")
        text = read(port, **bearer)
        assert value_of(text, sample) == 20
        assert value_of(text, "process_cpu_seconds_total") > 0
        assert value_of(text, 'watcher_action_plans{state="PENDING"}') == 0
        (folder,) = tmp_path.glob("watcher-site-metrics-*")
        killed = min(children_of(process.pid))
        subprocess.run(["kill", "-KILL", str(killed)], check=True)
        wait_for(lambda: killed not in children_of(process.pid) and len(children_of(process.pid)) == 2)
        wait_for(lambda: answers(port))
        assert value_of(read(port, **bearer), sample) == 20
    assert not folder.exists()


LOGIN = 'watcher_http_requests_total{method="GET",status="200",view="login"}'


def open_login(port: int, times: int) -> None:
    for _ in range(times):
        read(port, "/console/login/")


def test_web_port_serves_the_counters_of_all_workers_also_after_the_loss_of_each() -> None:
    metrics = free_port_number()
    with web_process(WATCHER_METRICS_PORTS=f"web={metrics}") as (port, process):
        wait_for(lambda: len(children_of(process.pid)) == 2)
        open_login(port, 20)
        before = value_of(read(metrics), LOGIN)
        for worker in children_of(process.pid):
            os.kill(worker, signal.SIGKILL)
        # The main process holds the port: connections wait until a new worker accepts them.
        after = value_of(read(metrics), LOGIN)
        wait_for(lambda: answers(port))
        open_login(port, 5)
        assert (before, after, value_of(read(metrics), LOGIN)) == (20, 20, 25)


def test_web_port_serves_the_process_metrics_of_the_workers() -> None:
    metrics = free_port_number()
    with web_process(WATCHER_METRICS_PORTS=f"web={metrics}"):
        text = read(metrics)
    assert value_of(text, "process_resident_memory_bytes") > 0
    assert "watcher_build_info{" in text


def test_web_port_serves_the_same_counters_after_a_reload() -> None:
    metrics = free_port_number()
    with web_process(WATCHER_METRICS_PORTS=f"web={metrics}") as (port, process):
        wait_for(lambda: len(children_of(process.pid)) == 2)
        open_login(port, 10)
        former = children_of(process.pid)
        process.send_signal(signal.SIGHUP)
        wait_for(lambda: len(children_of(process.pid) - former) == 2 and not children_of(process.pid) & former)
        wait_for(lambda: answers(port))
        assert value_of(read(metrics), LOGIN) == 10


def test_port_of_the_site_in_use_is_refused_in_one_line_with_status_2() -> None:
    with create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = start_web(stderr=subprocess.PIPE, PORT=str(port))
        _, errors = process.communicate(timeout=PATIENCE)
    lines = [line for line in errors.decode().splitlines() if not line.startswith("{")]
    assert (process.returncode, lines) == (2, [f"PORT: port {port} is in use."])
    assert "Connection in use" not in errors.decode()


def test_web_port_in_use_is_refused_in_one_line_with_status_2_before_workers_start(tmp_path: Path) -> None:
    with create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = start_web(
            stderr=subprocess.PIPE,
            PORT=str(free_port_number()),
            WATCHER_METRICS_PORTS=f"web={port}",
            TMPDIR=str(tmp_path),
        )
        _, errors = process.communicate(timeout=PATIENCE)
    (line,) = [line for line in errors.decode().splitlines() if not line.startswith("{")]
    assert (process.returncode, line) == (2, f"WATCHER_METRICS_PORTS: port {port} is in use.")
    assert "Booting worker" not in errors.decode()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "service"),
    [
        ("run_applier", "applier"),
        ("run_decision_engine", "decision-engine"),
        ("relay_notifications", "relay"),
    ],
)
def test_process_serves_its_metrics_on_its_port(command: str, service: str) -> None:
    port = free_port_number()
    process = start_command(command, WATCHER_METRICS_PORTS=f"{service}={port}")
    try:
        wait_for(lambda: Service.objects.active().filter(name=f"watcher-{service}").exists())
        text = read(port)
    finally:
        process.kill()
        process.wait()
    assert value_of(text, "process_resident_memory_bytes") > 0
    assert "watcher_build_info{" in text


@pytest.mark.parametrize(
    ("command", "service"),
    [
        ("run_applier", "applier"),
        ("run_decision_engine", "decision-engine"),
        ("relay_notifications", "relay"),
    ],
)
def test_process_answers_its_health_check_on_its_port(command: str, service: str) -> None:
    port = free_port_number()
    process = start_command(command, WATCHER_METRICS_PORTS=f"{service}={port}")
    try:
        wait_for(lambda: Service.objects.active().filter(name=f"watcher-{service}").exists())
        assert read(port, "/healthz") == "The main loop runs.\n"
    finally:
        process.kill()
        process.wait()


def test_applier_serves_the_metrics_of_its_actions() -> None:
    port = free_port_number()
    make_plan({"a": [], "b": ["a"]}, state="PENDING")
    process = start_command("run_applier", WATCHER_METRICS_PORTS=f"applier={port}", WATCHER_POLL_INTERVAL="0.1")
    sample = 'watcher_action_duration_seconds_count{action_type="nop",state="SUCCEEDED"}'
    try:
        wait_for(lambda: Service.objects.active().exists())
        wait_for(lambda: value_of(read(port), sample) == 2)
    finally:
        process.kill()
        process.wait()


def test_second_process_uses_the_next_port_of_the_range() -> None:
    first = free_port_number()
    environment = {"WATCHER_METRICS_PORTS": f"applier={first}-{first + 20}"}
    processes = [start_command("run_applier", WATCHER_HOST=host, **environment) for host in ("ctrl-1", "ctrl-2")]
    try:
        wait_for(lambda: Service.objects.active().count() == 2)
        assert sum(serves(port) for port in range(first, first + 21)) == 2
    finally:
        for process in processes:
            process.kill()
            process.wait()


def serves(port: int) -> bool:
    try:
        return "watcher_build_info" in read(port)
    except OSError:
        return False


def test_port_in_use_is_refused_in_one_line_with_status_2() -> None:
    with create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = start_fresh_command("run_applier", WATCHER_METRICS_PORTS=f"applier={port}")
        _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (2, f"CommandError: WATCHER_METRICS_PORTS: port {port} is in use.\n")
    assert not Service.objects.exists()


@pytest.mark.rabbitmq
def test_each_process_of_a_worker_serves_its_metrics() -> None:
    first = free_port_number()
    with own_queues() as queues:
        process = start_command(
            "run_worker",
            "--workers=2",
            WATCHER_METRICS_PORTS=f"worker={first}-{first + 20}",
            WATCHER_EXECUTOR="celery",
            CELERY_BROKER_URL=BROKER_URL,
            WATCHER_CELERY_QUEUE=queues[0],
        )
        try:
            wait_for(lambda: Service.objects.active().workers().count() == 2)
            assert sum(serves(port) for port in range(first, first + 21)) == 2
        finally:
            process.terminate()
            process.wait()


def test_worker_with_fewer_ports_than_processes_is_refused() -> None:
    port = free_port_number()
    process = start_command(
        "run_worker", "--workers=2", WATCHER_METRICS_PORTS=f"worker={port}", WATCHER_EXECUTOR="celery"
    )
    _, errors = process.communicate(PATIENCE)
    assert (process.wait(), len(errors.splitlines())) == (2, 1)
    assert "worker needs 2 free ports" in errors
