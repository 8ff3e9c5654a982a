"""Processes that the fork servers start behave like processes that ``python`` starts."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.processes import Process
from tests.waiting import PATIENCE

SLEEP = ("-c", "import time; time.sleep(600)")
ENVIRONMENT = {"SECRET_KEY": "0123456789" * 6, "DATABASE_URL": "sqlite://:memory:"}


def run(*arguments: str, cwd: Path = Path("/"), loaded: bool = False) -> tuple[int, str, str]:
    """Return the exit status of a process, its output and its error output."""
    process = Process(*arguments, env=ENVIRONMENT, cwd=cwd, loaded=loaded)
    output, errors = process.communicate(PATIENCE)
    return process.wait(), output, errors


@pytest.mark.parametrize(("code", "status"), [("pass", 0), ("import sys; sys.exit(3)", 3), ("1 / 0", 1)])
def test_exit_status_of_the_code_is_returned(code: str, status: int) -> None:
    assert run("-c", code)[0] == status


def test_sys_exit_with_a_text_prints_it_and_exits_with_status_1() -> None:
    assert run("-c", "import sys; sys.exit('why')") == (1, "", "why\n")


def test_standard_output_and_error_output_are_returned() -> None:
    assert run("-c", "import sys; print(1); sys.stderr.write('2')") == (0, "1\n", "2")


def test_exit_functions_are_called() -> None:
    assert run("-c", "import atexit; atexit.register(print, 'end')")[1] == "end\n"


def test_script_runs_in_its_folder_with_its_arguments(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import os, sys; print(os.getcwd(), sys.path[0], sys.argv)")
    assert run("script.py", "a", cwd=tmp_path)[1] == f"{tmp_path} {tmp_path} ['script.py', 'a']\n"


def test_environment_is_exactly_the_given_one() -> None:
    assert run("-c", "import os; print(dict(os.environ))")[1] == f"{ENVIRONMENT}\n"


@pytest.mark.parametrize(("loaded", "imported"), [(False, False), (True, True)])
def test_site_is_loaded_only_on_request(loaded: bool, imported: bool) -> None:
    code = "import sys; print('watcher_site.settings' in sys.modules)"
    assert run("-c", code, loaded=loaded)[1] == f"{imported}\n"


def test_running_process_has_no_exit_status() -> None:
    process = Process(*SLEEP, env=ENVIRONMENT)
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.kill()
    assert process.wait(PATIENCE) == -signal.SIGKILL


def test_process_in_a_new_session_is_killed_with_its_process_group() -> None:
    process = Process(*SLEEP, env=ENVIRONMENT, start_new_session=True)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(PATIENCE) == -signal.SIGKILL
