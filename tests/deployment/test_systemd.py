"""The systemd units of docs/deployment/systemd."""

import os
import re
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest
from django.core.management import get_commands

from tests.processes import ROOT
from watcher_site import settings

UNITS = ROOT / "docs" / "deployment" / "systemd"
COMMON = UNITS / "watcher-site-.service.d" / "common.conf"
SERVICES = sorted(file.name for file in UNITS.glob("*.service"))
EXECUTABLE = "/srv/watcher-site/.venv/bin/"
systemd = pytest.mark.programs("systemd-analyze")
# Of systemd's exposure levels, from 0 to 10, those below this one are called OK.
MOST_EXPOSURE = 2.0


def read_unit(file: Path) -> ConfigParser:
    unit = ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(file)
    return unit


def instance(name: str) -> str:
    return name.replace("@.", "@1.")


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Return a root folder with the units and instances of the templates, which start a program that exists."""
    folder = tmp_path / "etc" / "systemd" / "system"
    shutil.copytree(UNITS, folder)
    for name in SERVICES:
        unit = folder / name
        unit.write_text(re.sub(rf"{EXECUTABLE}\S+", "/bin/true", unit.read_text()))
        if "@" in name:
            (folder / instance(name)).symlink_to(name)
    return tmp_path


def analyze(root: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    variables = {"PATH": os.environ["PATH"], "SYSTEMD_UNIT_PATH": f"{root}/etc/systemd/system:"}
    command = ["systemd-analyze", *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


@systemd
def test_systemd_accepts_the_units(installed: Path) -> None:
    folder = installed / "etc" / "systemd" / "system"
    units = [str(folder / instance(name)) for name in SERVICES]
    verified = analyze(installed, "verify", "--man=no", *units, str(folder / "watcher-site.target"))
    assert (verified.returncode, verified.stderr) == (0, "")


@systemd
@pytest.mark.parametrize("name", SERVICES)
def test_units_are_confined(installed: Path, name: str) -> None:
    options = ("--offline=yes", f"--root={installed}", f"--threshold={MOST_EXPOSURE * 10:.0f}")
    judged = analyze(installed, "security", *options, instance(name))
    assert judged.returncode == 0, judged.stdout + judged.stderr


def test_every_long_running_command_has_a_unit() -> None:
    started = {read_unit(UNITS / name)["Service"]["ExecStart"].split()[1] for name in SERVICES}
    processes = {name for name in get_commands() if re.match(r"(run|relay|listen)_", name)}
    assert started == {"--config", *processes}


def test_stop_timeout_of_a_unit_covers_the_grace_period() -> None:
    limits = {name: read_unit(UNITS / name)["Service"]["TimeoutStopSec"] for name in SERVICES}
    seconds = {name: int(limit.removesuffix("min")) * 60 for name, limit in limits.items()}
    assert {name for name, limit in seconds.items() if limit < settings.STOP_GRACE} == set()


def test_all_units_stop_and_start_with_the_target() -> None:
    wanted = {read_unit(UNITS / name)["Install"]["WantedBy"] for name in SERVICES}
    assert wanted == {read_unit(COMMON)["Unit"]["PartOf"]} == {"watcher-site.target"}


def test_service_is_not_restarted_after_invalid_settings() -> None:
    service = read_unit(COMMON)["Service"]
    assert (service["Restart"], service["RestartPreventExitStatus"]) == ("always", "2")
