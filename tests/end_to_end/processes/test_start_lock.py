"""Locks of two starts of one site, and of two installations of one environment."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.core.files import locks

from tests.processes import ROOT
from tests.waiting import PATIENCE
from tests.watcher_site.site_process import VALID_ENVIRONMENT
from watcher_site import settings as site_settings


def test_second_start_at_one_port_is_refused_in_one_line_with_status_2(tmp_path: Path) -> None:
    """While the first start prepares the site, the port has no listener yet: a check of the port alone succeeds."""
    code = (
        f"from pathlib import Path; from watcher_site import settings; settings.DATA_DIR = Path({str(tmp_path)!r})\n"
    )
    code += "import sys; from watcher_site.processes import start; sys.exit(start.main())"
    with (tmp_path / f"port-{site_settings.PORT}.lock").open("w") as file:
        locks.lock(file, locks.LOCK_EX)
        ended = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env=VALID_ENVIRONMENT, capture_output=True, text=True
        )
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith("PORT: another start in this folder")


def test_second_make_waits_for_the_first_installation(tmp_path: Path) -> None:
    one_at_a_time = [sys.executable, str(ROOT / ".ci" / "one-at-a-time"), str(tmp_path / "lock")]
    read, then_echo = "read line; echo first >> order", "echo second >> order"
    first = subprocess.Popen(
        [*one_at_a_time, "sh", "-c", f"echo ready; {read}"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert first.stdout
    assert first.stdout.readline() == b"ready\n"
    second = subprocess.Popen([*one_at_a_time, "sh", "-c", then_echo], cwd=tmp_path, stdout=subprocess.PIPE)
    assert second.stdout
    assert b"waiting for it" in second.stdout.readline()
    first.communicate(b"\n", timeout=PATIENCE)
    second.communicate(timeout=PATIENCE)
    assert (tmp_path / "order").read_text() == "first\nsecond\n"


@pytest.mark.slow
def test_incomplete_environment_is_created_again(tmp_path: Path) -> None:
    """The environment has a Python and no pip, so that a bare ``pip`` would be that of another environment."""
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    # Without the packages that build the site, whose installation takes as long as the environment.
    subprocess.run(["make", ".venv/made", f"PYTHON={sys.executable}", "PIP=true"], cwd=tmp_path, check=True)
    ended = subprocess.run(
        [".venv/bin/python", "-m", "pip", "--version"], cwd=tmp_path, capture_output=True, text=True
    )
    assert str(tmp_path / ".venv") in ended.stdout
