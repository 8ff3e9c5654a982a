"""The site installed from a wheel runs outside of a checkout."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
import requests

from tests.waiting import wait_for
from tests.watcher_site.site_process import free_port_number

pytestmark = [pytest.mark.longest, pytest.mark.slow]
ROOT = Path(__file__).parents[3]
KEY = "k" * 30 + "0123456789" * 3
# The parts of the repository from which a wheel is built.
PARTS = (
    "watcher_site",
    "actions",
    "plans",
    "audits",
    "cluster",
    "templates",
    "pyproject.toml",
    "Procfile",
    "README.md",
    ".gitignore",
)
BUILT_PAGE = "watcher_site/documentation/built/index.fjson"
BUILT_PICTURE = "watcher_site/documentation/built/_images/page.webp"
BUILT_DOWNLOAD = "watcher_site/documentation/built/_downloads/c0ffee/alerts.yml"
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the repository with the generated files, as ``make wheel`` creates them before the build.

    Building the documentation takes too long for a test: a single page stands in for it.
    """
    folder = tmp_path_factory.mktemp("checkout")
    generated = shutil.ignore_patterns("__pycache__", "*.mo", "built")
    for part in PARTS:
        source = ROOT / part
        copy = shutil.copy if source.is_file() else lambda *paths: shutil.copytree(*paths, ignore=generated)
        copy(source, folder / part)
    babel = [sys.executable, "-m", "babel.messages.frontend", "--quiet"]
    catalogues = ["--domain", "django", "--directory", "watcher_site/locale"]
    subprocess.run([*babel, "compile", *catalogues], cwd=folder, check=True)
    page = folder / BUILT_PAGE
    (page.parent / ".doctrees").mkdir(parents=True)
    (page.parent / "_images").mkdir()
    (folder / BUILT_DOWNLOAD).parent.mkdir(parents=True)
    (page.parent / ".doctrees" / "index.doctree").touch()
    (page.parent / "_images" / "page.webp").touch()
    (folder / BUILT_DOWNLOAD).touch()
    page.write_text('{"title": "Documentation", "body": "", "toc": ""}')
    return folder


@pytest.fixture(scope="module")
def wheel(checkout: Path) -> Path:
    options = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(checkout / "dist")]
    subprocess.run([*PIP, "wheel", *options, str(checkout)], check=True)
    (file,) = (checkout / "dist").glob("*.whl")
    return file


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages of the wheel; their dependencies are in this environment."""
    packages = tmp_path_factory.mktemp("packages")
    subprocess.run([*PIP, "install", "--no-deps", "--target", str(packages), str(wheel)], check=True)
    return packages


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the working directory of all processes, with the database: its migration takes most of the time."""
    return tmp_path_factory.mktemp("site")


@pytest.fixture(scope="module")
def environment(installed: Path, folder: Path) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {
        **inherited,
        "PYTHONPATH": str(installed),
        "SECRET_KEY": KEY,
        "WATCHER_HTTPS": "false",
        "DATABASE_URL": f"sqlite:///{folder}/watcher.sqlite3",
    }


def test_command_of_the_wheel_prepares_a_site(installed: Path, environment: dict[str, str], folder: Path) -> None:
    command = [sys.executable, str(installed / "bin" / "watcher-site"), "prepare"]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "Log in as" in ended.stdout


@pytest.fixture(scope="module")
def address(installed: Path, environment: dict[str, str], folder: Path) -> Iterator[str]:
    """Return the address of a web process that runs from the wheel."""
    migrate = [sys.executable, str(installed / "bin" / "watcher-site"), "migrate", "--verbosity", "0"]
    subprocess.run(migrate, cwd=folder, env=environment, check=True)
    port = free_port_number()
    command = [sys.executable, "-m", "gunicorn", "--config", "python:watcher_site.gunicorn"]
    with subprocess.Popen(command, cwd=folder, env=environment | {"PORT": str(port)}) as server:
        try:
            wait_for(lambda: fetch(f"http://127.0.0.1:{port}/healthz"))
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def test_wheel_contains_the_data_files(wheel: Path) -> None:
    names = set(ZipFile(wheel).namelist())
    catalogues = {
        po.relative_to(ROOT).with_suffix(".mo").as_posix() for po in ROOT.glob("watcher_site/locale/**/*.po")
    }
    templates = {
        f"watcher_site/{file.relative_to(ROOT)}" for file in (ROOT / "templates").rglob("*") if file.is_file()
    }
    needed = {
        BUILT_PAGE,
        BUILT_PICTURE,
        BUILT_DOWNLOAD,
        "watcher_site/Procfile",
        "audits/demonstration_cloud.json",
        *catalogues,
        *templates,
    }
    assert catalogues
    assert needed - names == set()


def test_wheel_contains_neither_tests_nor_intermediate_files(wheel: Path) -> None:
    names = ZipFile(wheel).namelist()
    assert [name for name in names if name.startswith("tests/") or ".doctrees" in name] == []


def test_site_from_the_wheel_serves_pages_and_static_files(address: str) -> None:
    assert 'name="username"' in fetch(f"{address}/console/login/")
    assert "--page" in fetch(f"{address}/static/watcher_site/console.css")


def test_site_from_the_wheel_serves_german_pages(address: str) -> None:
    page = fetch(f"{address}/console/login/", {"Accept-Language": "de"})
    assert '<html lang="de">' in page
    assert "Passwort" in page
    assert "Anmelden" in page


def fetch(address: str, headers: dict[str, str] | None = None) -> str:
    """Return the body of the response, or an empty text while no server listens."""
    try:
        return requests.get(address, headers=headers, timeout=30).text
    except requests.ConnectionError:
        return ""
