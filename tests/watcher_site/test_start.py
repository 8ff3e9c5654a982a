"""`python -m watcher_site.start` starts what the Procfile lists, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.watcher_site.site_process import ROOT

PROCFILE = """
web: echo $$ > web.pid; exec sleep 60
applier: echo $$ > applier.pid; exec sleep 60
"""


@pytest.fixture
def started(tmp_path: Path) -> subprocess.Popen[bytes]:
    (tmp_path / "Procfile").write_text(PROCFILE)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "watcher_site.start"], cwd=tmp_path, env=environment, start_new_session=True
    )
    wait_for(lambda: len(pids(tmp_path)) == 2)
    return process


def pids(folder: Path) -> list[int]:
    return [int(text) for path in folder.glob("*.pid") if (text := path.read_text())]


def wait_for(condition: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_every_process(started: subprocess.Popen[bytes], tmp_path: Path, sign: int) -> None:
    os.killpg(started.pid, sign)
    assert started.wait(10) == 0
    wait_for(lambda: not any(map(runs, pids(tmp_path))))


@pytest.mark.slow
def test_the_end_of_one_process_is_the_end_of_all(started: subprocess.Popen[bytes], tmp_path: Path) -> None:
    os.kill(pids(tmp_path)[0], signal.SIGKILL)
    assert started.wait(10) != 0
    wait_for(lambda: not any(map(runs, pids(tmp_path))))


@pytest.mark.slow
def test_what_runs_has_time_to_finish(tmp_path: Path) -> None:
    """honcho by itself would kill it after five seconds."""
    finishing = "trap 'sleep 7; echo done > finished; exit 0' TERM; echo $$ > applier.pid; while :; do sleep 0.1; done"
    (tmp_path / "Procfile").write_text(f"applier: {finishing}\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-m", "watcher_site.start"], cwd=tmp_path, env=environment)
    wait_for(lambda: len(pids(tmp_path)) == 1)
    process.terminate()
    assert process.wait(20) == 0
    assert (tmp_path / "finished").read_text() == "done\n"
