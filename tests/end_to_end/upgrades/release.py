"""The previous release: its Git reference, its code, and a Python environment with the packages that it requires."""

import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple

import pytest
from django.core.files import locks
from packaging.utils import canonicalize_name

from tests.processes import ROOT

# The commit of version 1.0.0, for clones without tags.
FIRST_RELEASE = "42d5e3fe"
# A commit or tag that replaces the newest tag: make upgrade-test FROM=…
VARIABLE = "WATCHER_TEST_RELEASE"
ENVIRONMENTS = ROOT / ".upgrade"
# Version 1.0.0 has constraints, later ones have requirements with hashes.
CONSTRAINTS = Path(".ci") / "constraints.txt"
REQUIREMENTS = (".ci/requirements/build.txt", ".ci/requirements/production.txt")
PINNED = re.compile(r"^([\w.-]+)==([^\s;]+)", re.MULTILINE)
# The packages that build a release have no effect on its processes.
BUILDING = {"hatchling", "pip", "setuptools"}


class Release(NamedTuple):
    """A release: its Git reference, the folder of its code, and its Python."""

    reference: str
    folder: Path
    python: str


def this_release() -> Release:
    return Release("this one", ROOT, sys.executable)


def previous_reference() -> str:
    """Return the chosen reference, or the newest tag of a version before this commit."""
    if chosen := os.environ.get(VARIABLE):
        return chosen
    command = ["git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or FIRST_RELEASE


def previous_release(folder: Path) -> Release:
    """Extract the previous release into a folder, and install the packages that it requires."""
    reference = previous_reference()
    archive = subprocess.run(["git", "archive", reference], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode and os.environ.get(VARIABLE):
        pytest.fail(f"{VARIABLE}: there is no commit {reference}.")
    if archive.returncode:
        pytest.skip(f"this clone has no commit {reference}: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return Release(reference, folder, install_packages(folder))


def has_other_packages(folder: Path) -> bool:
    """Return whether a package of this environment has another version than the release pins."""
    files = [folder / name for name in (CONSTRAINTS, *REQUIREMENTS) if (folder / name).exists()]
    pinned = dict(pin for file in files for pin in PINNED.findall(file.read_text()))
    installed = {canonicalize_name(one.name): one.version for one in metadata.distributions()}
    versions = {canonicalize_name(name): version for name, version in pinned.items() if name not in BUILDING}
    return any(installed.get(name, version) != version for name, version in versions.items())


def install_packages(folder: Path) -> str:
    """Return the Python of an environment with the packages of a release.

    This is the one of the tests if it has the same versions. Otherwise, the packages are installed into an environment
    for these requirements, which is kept in `ENVIRONMENTS`; ``make clean`` removes it.
    """
    if not has_other_packages(folder):
        return sys.executable
    digest = hashlib.sha256()
    for name in (CONSTRAINTS, *REQUIREMENTS, "pyproject.toml"):
        if (folder / name).exists():
            digest.update((folder / name).read_bytes())
    environment = ENVIRONMENTS / digest.hexdigest()[:12]
    python, done = environment / "bin" / "python", environment / "installed"
    ENVIRONMENTS.mkdir(exist_ok=True)
    with (ENVIRONMENTS / "lock").open("a") as lock:
        locks.lock(lock, locks.LOCK_EX)
        if not done.exists():
            rmtree(environment, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", environment], check=True)
            for options in installations(folder):
                install = [python, "-m", "pip", "install", "--quiet", "--quiet", "--disable-pip-version-check"]
                subprocess.run([*install, *options], check=True)
            done.touch()
    return str(python)


def installations(folder: Path) -> list[list[str | Path]]:
    """Return the options of each installation that a release requires."""
    if (folder / CONSTRAINTS).exists():
        return [["--constraint", folder / CONSTRAINTS, folder]]
    files = [option for name in REQUIREMENTS for option in ("--requirement", folder / name)]
    return [["--require-hashes", *files], ["--no-deps", "--no-build-isolation", folder]]
