"""The site installed from a wheel runs outside of a checkout."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from tests.waiting import wait_for
from tests.watcher_site.site_process import free_port_number

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
KEY = "k" * 30 + "0123456789" * 3
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages of the wheel; what they depend on is in this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheels, packages = folder / "wheels", folder / "packages"
    options = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels)]
    subprocess.run([*pip, "wheel", *options, str(ROOT)], check=True)
    (wheel,) = wheels.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", str(packages), str(wheel)], check=True)
    return packages


@pytest.fixture
def environment(installed: Path, tmp_path: Path) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {
        **inherited,
        "PYTHONPATH": str(installed),
        "SECRET_KEY": KEY,
        "WATCHER_HTTPS": "false",
        "DATABASE_URL": f"sqlite:///{tmp_path}/watcher.sqlite3",
    }


def test_the_command_of_the_wheel_prepares_a_site(
    installed: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    command = [sys.executable, str(installed / "bin" / "watcher-site"), "prepare"]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "Log in as" in ended.stdout


def test_the_wheel_serves_pages_and_static_files(environment: dict[str, str], tmp_path: Path) -> None:
    port = free_port_number()
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "gunicorn", "--config", "python:watcher_site.gunicorn"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment | {"PORT": str(port)}) as server:
        try:
            wait_for(lambda: fetch(f"{address}/healthz"))
            assert 'name="username"' in fetch(f"{address}/console/login/")
            assert "--page" in fetch(f"{address}/static/watcher_site/console.css")
        finally:
            server.terminate()


def fetch(address: str) -> str:
    """Return the body of an answer, or an empty text while no server listens."""
    try:
        return requests.get(address, timeout=30).text
    except requests.ConnectionError:
        return ""
