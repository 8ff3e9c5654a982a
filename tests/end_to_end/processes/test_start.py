"""``python -m watcher_site.processes.start`` runs the Procfile, restarts its processes, and stops all of them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import ROOT
from tests.waiting import PATIENCE, wait_for
from watcher_site import settings
from watcher_site.processes.procfile import MOST_RESTARTS, commands

PROCFILE = """
web: echo $$ > web.pid; exec sleep 60
applier: echo $$ > applier.pid; exec sleep 60
"""


@pytest.fixture
def started(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = start(tmp_path, PROCFILE)
    wait_for(lambda: len(pids(tmp_path)) == 2)
    yield process
    process.terminate()
    process.wait(PATIENCE)


def start(folder: Path, procfile: str, output: int | None = None) -> subprocess.Popen[bytes]:
    """Start the processes of a Procfile, which need no preparation.

    Args:
        output: a descriptor for the lines that are printed, in place of a file in the folder.
    """
    (folder / "Procfile").write_text(procfile)
    serve = "import sys; from watcher_site.processes.start import SERVE, Start; sys.exit(Start().run(SERVE))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (folder / "printed").open("wb") as printed:
        return subprocess.Popen(
            [sys.executable, "-c", serve],
            cwd=folder,
            env=environment,
            stdout=printed if output is None else output,
            start_new_session=True,
        )


def pids(folder: Path) -> list[int]:
    return [int(text) for path in folder.glob("*.pid") if (text := path.read_text())]


def children(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True)
    return [int(text) for text in found.stdout.split()]


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_stops_every_process(started: subprocess.Popen[bytes], tmp_path: Path, sign: int) -> None:
    os.killpg(started.pid, sign)
    assert started.wait(PATIENCE) == 0
    wait_for(lambda: not any(map(runs, pids(tmp_path))))


@pytest.mark.slow
def test_site_stops_when_its_output_pipe_is_closed(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    process = start(tmp_path, PROCFILE + "engine: while sleep 0.1; do echo line; done", writer)
    os.close(writer)
    wait_for(lambda: len(pids(tmp_path)) == 2)
    os.close(reader)
    process.wait(PATIENCE)
    wait_for(lambda: not any(map(runs, pids(tmp_path))))


@pytest.mark.slow
def test_process_that_exits_with_status_2_stops_the_site(tmp_path: Path) -> None:
    process = start(tmp_path, PROCFILE + "engine: while [ ! -e refused ]; do sleep 0.1; done; exit 2")
    wait_for(lambda: len(pids(tmp_path)) == 2)
    (tmp_path / "refused").touch()
    assert process.wait(PATIENCE) == 2
    wait_for(lambda: not any(map(runs, pids(tmp_path))))


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_killed_process_is_restarted_and_others_continue(
    started: subprocess.Popen[bytes], tmp_path: Path, sign: int
) -> None:
    web, applier = (int((tmp_path / f"{name}.pid").read_text()) for name in ("web", "applier"))
    os.kill(applier, sign)
    wait_for(lambda: applier not in pids(tmp_path))
    assert all(map(runs, pids(tmp_path)))
    assert web in pids(tmp_path)
    assert "applier was killed by SIG" in (tmp_path / "printed").read_text()


@pytest.mark.slow
def test_restarted_process_stops_with_the_others(started: subprocess.Popen[bytes], tmp_path: Path) -> None:
    killed = pids(tmp_path)
    os.kill(killed[0], signal.SIGKILL)
    wait_for(lambda: len(pids(tmp_path)) == 2 and killed[0] not in pids(tmp_path))
    started.terminate()
    assert started.wait(PATIENCE) == 0
    wait_for(lambda: not any(map(runs, pids(tmp_path))))


@pytest.mark.slow
def test_stop_before_a_restart_leaves_no_process(started: subprocess.Popen[bytes], tmp_path: Path) -> None:
    os.kill(pids(tmp_path)[0], signal.SIGKILL)
    started.terminate()
    assert started.wait(PATIENCE) == 0
    wait_for(lambda: not any(map(runs, pids(tmp_path))))


@pytest.mark.slow
def test_crashing_process_is_restarted_without_limit_and_others_continue(tmp_path: Path) -> None:
    (tmp_path / "Procfile").write_text(PROCFILE + "engine: echo >> starts; exit 1")
    run = "from watcher_site.processes import procfile; procfile.FIRST_PAUSE = 0.001; raise SystemExit(procfile.run())"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-c", run], cwd=tmp_path, env=environment, start_new_session=True)
    try:
        wait_for(lambda: len(pids(tmp_path)) == 2)
        before, starts = pids(tmp_path), tmp_path / "starts"
        wait_for(lambda: starts.exists() and starts.read_text().count("\n") > 2 + MOST_RESTARTS)
        assert pids(tmp_path) == before
        assert all(map(runs, before))
    finally:
        process.terminate()
        process.wait(PATIENCE)


@pytest.mark.slow
def test_web_process_that_cannot_start_stops_the_site(tmp_path: Path) -> None:
    process = start(tmp_path, "web: exit 1\n" + PROCFILE.replace("web:", "engine:"))
    assert process.wait(PATIENCE) == 1
    wait_for(lambda: not any(map(runs, pids(tmp_path))))


@pytest.mark.slow
def test_repeatedly_killed_process_stops_the_site(tmp_path: Path) -> None:
    """The pauses are short to save time."""
    (tmp_path / "Procfile").write_text(PROCFILE + "engine: echo >> starts; kill -9 $$")
    run = "from watcher_site.processes import procfile; procfile.FIRST_PAUSE = 0.01; raise SystemExit(procfile.run())"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run([sys.executable, "-c", run], cwd=tmp_path, env=environment, timeout=PATIENCE)
    assert ended.returncode != 0
    assert (tmp_path / "starts").read_text().count("\n") == 1 + MOST_RESTARTS
    wait_for(lambda: not any(map(runs, pids(tmp_path))))


@pytest.mark.slow
def test_no_process_survives_the_killed_manager(started: subprocess.Popen[bytes], tmp_path: Path) -> None:
    manager = min(children(started.pid))
    os.kill(manager, signal.SIGKILL)
    assert started.wait(PATIENCE) != 0
    wait_for(lambda: not any(map(runs, pids(tmp_path))))


@pytest.mark.slow
def test_no_process_survives_the_killed_start(started: subprocess.Popen[bytes], tmp_path: Path) -> None:
    manager = min(children(started.pid))
    started.kill()
    started.wait(PATIENCE)
    try:
        wait_for(lambda: not any(map(runs, [manager, *pids(tmp_path)])))
    finally:
        if runs(manager):
            os.kill(manager, signal.SIGTERM)


@pytest.mark.slow
def test_killed_watching_process_stops_the_site(started: subprocess.Popen[bytes], tmp_path: Path) -> None:
    watchers = children(min(children(started.pid)))
    os.kill(min(watchers), signal.SIGKILL)
    assert started.wait(PATIENCE) != 0
    wait_for(lambda: not any(map(runs, pids(tmp_path))))


@pytest.mark.slow
def test_stopping_process_has_longer_than_five_seconds(tmp_path: Path) -> None:
    """honcho by default kills a process after five seconds."""
    finishing = "trap 'sleep 7; echo done > finished; exit 0' TERM; echo $$ > applier.pid; while :; do sleep 0.1; done"
    process = start(tmp_path, f"applier: {finishing}\n")
    wait_for(lambda: len(pids(tmp_path)) == 1)
    process.terminate()
    assert process.wait(PATIENCE) == 0
    assert (tmp_path / "finished").read_text() == "done\n"


@pytest.mark.parametrize(
    ("executor", "names"), [("threads", ["web", "applier"]), ("celery", ["web", "applier", "worker"])]
)
def test_worker_is_started_only_with_the_celery_executor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: str, names: list[str]
) -> None:
    (tmp_path / "Procfile").write_text(PROCFILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(settings, "EXECUTOR", executor)
    assert list(commands()) == names


def test_listener_is_started_with_a_cloud_notification_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Procfile").write_text(PROCFILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(settings, "CLOUD_NOTIFICATION_URL", "rabbit://broker.example.org")
    assert commands()["listener"] == "exec python -m watcher_site.processes.command_line listen_notifications"
