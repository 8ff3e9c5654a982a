"""The build steps of the Containerfile, run on this machine as a container engine would run them.

The packages are those of this environment: none is downloaded.
"""

import os
import re
import shlex
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import ROOT
from tests.watcher_site.site_process import KEY

pytestmark = [pytest.mark.longest, pytest.mark.slow]
CONTAINERFILE = ROOT / "docs" / "deployment" / "Containerfile"
GENERATED = shutil.ignore_patterns("__pycache__", "*.mo", "built", "secrets")
OFFLINE = {
    "PATH": os.environ["PATH"],
    "HOME": os.environ.get("HOME", "/"),
    "PYTHONPATH": sysconfig.get_path("purelib"),
    "PIP_NO_INDEX": "1",
    "PIP_NO_DEPS": "1",
    # The variable has the meaning of --no-build-isolation if it is false.
    "PIP_NO_BUILD_ISOLATION": "0",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}


def build_stage() -> Iterator[tuple[str, str]]:
    """Yield the instructions of the first stage with their arguments."""
    text = re.sub(r"\\\n", " ", CONTAINERFILE.read_text())
    stage = text.partition("\nFROM ")[2].partition("\nFROM ")[0]
    for line in stage.splitlines()[1:]:
        if line and not line.startswith("#"):
            instruction, _, arguments = line.partition(" ")
            yield instruction, arguments


def copy(sources: list[str], target: Path) -> None:
    for source in sources:
        path = ROOT / source
        if path.is_dir():
            shutil.copytree(path, target, ignore=GENERATED)
        else:
            file = target / path.name if len(sources) > 1 else target
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, file)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the virtual environment that the image contains."""
    root = tmp_path_factory.mktemp("image")
    folder = root
    for instruction, arguments in build_stage():
        if instruction == "WORKDIR":
            folder = root / arguments.strip("/")
            folder.mkdir()
        elif instruction == "COPY":
            *sources, target = shlex.split(arguments)
            copy(sources, folder / target)
        elif instruction == "RUN":
            command = re.sub(r"(?<![\w.])/opt/", f"{root}/opt/", arguments)
            ended = subprocess.run(
                ["sh", "-c", command], cwd=folder, env=OFFLINE, capture_output=True, text=True, check=False
            )
            assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
        else:
            pytest.fail(f"The test does not know {instruction}.")
    return root / "opt" / "watcher-site"


def packages(environment: Path) -> Path:
    (folder,) = environment.glob("lib/python3.*/site-packages")
    return folder


def test_image_contains_translations_and_documentation(environment: Path) -> None:
    site = packages(environment) / "watcher_site"
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")}
    assert (site / "locale" / "de" / "LC_MESSAGES" / "django.mo").exists()
    assert pages - {page.stem for page in (site / "documentation" / "built").glob("*.fjson")} == set()


def test_image_does_not_contain_pip(environment: Path) -> None:
    assert not (packages(environment) / "pip").exists()


def test_command_of_the_image_runs_in_a_read_only_folder(environment: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    variables = {"SECRET_KEY": KEY, "DATABASE_URL": "sqlite://:memory:", "ALLOWED_HOSTS": "watcher.example.org"}
    command = [environment / "bin" / "watcher-site", "check", "--deploy", "--fail-level", "WARNING"]
    ended = subprocess.run(
        command, cwd=tmp_path, env={**OFFLINE, **variables}, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
