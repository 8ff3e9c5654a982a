"""The previous release: its Git reference, its code, and a Python environment with the packages that it requires."""

import hashlib
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple

import pytest
from django.core.files import locks

from tests.processes import ROOT

# The commit of version 1.0.0, for clones without tags.
FIRST_RELEASE = "42d5e3fe"
# A commit or tag that replaces the newest tag: make upgrade-test FROM=…
VARIABLE = "WATCHER_TEST_RELEASE"
ENVIRONMENTS = ROOT / ".upgrade"
# Version 1.0.0 has constraints, later ones have requirements with hashes.
CONSTRAINTS = Path(".ci") / "constraints.txt"
REQUIREMENTS = (".ci/requirements/build.txt", ".ci/requirements/production.txt")


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


def install_packages(folder: Path) -> str:
    """Install the packages of a release into an environment for its requirements, and return its Python.

    The environments are kept in `ENVIRONMENTS`, which ``make clean`` removes.
    """
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
