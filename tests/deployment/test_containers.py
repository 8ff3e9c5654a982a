"""The image and the compose file of docs/deployment: their confinement, and the commands that they run."""

import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.processes import ROOT
from tests.watcher_site.site_process import run
from watcher_site import settings

DEPLOYMENT = ROOT / "docs" / "deployment"
CONTAINERFILE = DEPLOYMENT / "Containerfile"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
COMPOSE = yaml.safe_load((DEPLOYMENT / "compose.yaml").read_text())
SITE = {name: service for name, service in COMPOSE["services"].items() if "watcher-site" in service["image"]}
WEB = ["gunicorn", "--config", "python:watcher_site.gunicorn"]


def last_stage() -> str:
    return CONTAINERFILE.read_text().rpartition("\nFROM ")[2]


def python_arguments(command: list[str]) -> list[str]:
    """Return the arguments with which Python runs a command of the image."""
    module = {"watcher-site": "watcher_site.processes.command_line", "gunicorn": "gunicorn"}[command[0]]
    return ["-m", module, *command[1:]]


@pytest.mark.programs("hadolint")
def test_hadolint_accepts_the_containerfile() -> None:
    linted = subprocess.run(["hadolint", CONTAINERFILE], capture_output=True, text=True, check=False)
    assert (linted.returncode, linted.stdout) == (0, "")


def test_image_is_built_from_all_files_of_the_wheel() -> None:
    target = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    copied = {
        source
        for line in re.findall(r"^COPY (?!--)(.*) \S+$", CONTAINERFILE.read_text(), re.M)
        for source in line.split()
    }
    assert {*target["packages"], *target["force-include"], PROJECT["project"]["readme"], "docs"} - copied == set()
    assert [source for source in copied if not (ROOT / source).exists()] == []


def test_image_label_is_the_version_of_the_site() -> None:
    assert f"ARG VERSION={PROJECT['project']['version']}\n" in last_stage()


@pytest.mark.parametrize(
    "instruction", ["USER 10001:10001", "STOPSIGNAL SIGTERM", f"CMD {str(WEB).replace(chr(39), chr(34))}"]
)
def test_image_runs_the_web_process_unprivileged(instruction: str) -> None:
    assert instruction in last_stage().splitlines()


def test_image_sets_its_user_once() -> None:
    assert re.findall(r"^USER (.*)$", CONTAINERFILE.read_text(), re.M) == ["10001:10001"]


# The compose file.


def test_compose_file_has_every_process_of_a_site_with_workers() -> None:
    replicas = {name: service.get("deploy", {}).get("replicas", 1) for name, service in COMPOSE["services"].items()}
    processes = {"migrate": 1, "web": 1, "applier": 2, "worker": 2, "decision-engine": 1, "relay": 1}
    assert replicas == {**processes, "database": 1, "broker": 1, "proxy": 1}


@pytest.mark.parametrize("name", SITE)
def test_containers_of_the_site_have_a_read_only_root_without_volumes(name: str) -> None:
    service = SITE[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "volumes" not in service


@pytest.mark.parametrize("name", sorted(SITE))
def test_process_of_the_compose_file_with_an_invalid_secret_key_exits_with_one_line(name: str) -> None:
    ended = run(*python_arguments(SITE[name].get("command", WEB)), SECRET_KEY="too-short", DEBUG="false")
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert re.fullmatch(r"SECRET_KEY: must be set .*\n", ended.stderr)


def test_stop_grace_period_of_a_service_covers_the_grace_period_of_the_site() -> None:
    seconds = {name: minutes(SITE[name]["stop_grace_period"]) * 60 for name in SITE if name != "migrate"}
    assert [name for name, grace in seconds.items() if grace < settings.STOP_GRACE] == []


def minutes(text: str) -> int:
    return int(text.removesuffix("m"))


def test_variables_of_the_compose_file_are_documented() -> None:
    documented = set(re.findall(r"^\| `([A-Z_]+)` \|", (ROOT / "docs" / "configuration.md").read_text(), re.M))
    used = {name.removesuffix("_FILE") for service in SITE.values() for name in service["environment"]}
    assert used - documented == set()


@pytest.mark.parametrize("name", ["applier", "decision-engine", "relay"])
def test_main_loops_of_the_compose_file_have_a_health_check_on_the_port_of_their_metrics(name: str) -> None:
    service = SITE[name]
    kind, *command, checked = service["healthcheck"]["test"]
    assert (kind, command, checked) == ("CMD", ["python", "-m", "watcher_site.processes.probe"], name)
    assert f"{name}=" in service["environment"]["WATCHER_METRICS_PORTS"]


def test_only_the_proxy_is_published() -> None:
    assert [name for name, service in COMPOSE["services"].items() if "ports" in service] == ["proxy"]
    (edge,) = COMPOSE["networks"]["edge"]["ipam"]["config"]
    assert SITE["web"]["environment"]["WATCHER_TRUSTED_PROXIES"] == edge["subnet"]


def secret_files() -> set[str]:
    return {Path(secret["file"]).name for secret in COMPOSE["secrets"].values()}


@pytest.fixture
def deployment(tmp_path: Path) -> Path:
    shutil.copy(DEPLOYMENT / "make-secrets.sh", tmp_path)
    return tmp_path


def make_secrets(folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["sh", folder / "make-secrets.sh"], capture_output=True, text=True, check=False)


def test_make_secrets_writes_the_secrets_once(deployment: Path) -> None:
    assert make_secrets(deployment).returncode == 0
    made = {file.name: file.read_text() for file in (deployment / "secrets").iterdir()}
    assert set(made) == secret_files()
    assert (deployment / "secrets").stat().st_mode & 0o777 == 0o700
    again = make_secrets(deployment)
    assert (again.returncode, again.stderr) == (2, "secrets exists already.\n")
    assert {file.name: file.read_text() for file in (deployment / "secrets").iterdir()} == made


def test_site_accepts_the_made_secrets(deployment: Path) -> None:
    make_secrets(deployment)
    files = {f"{name}_FILE": f"{deployment}/secrets/{file}" for name, file in SECRETS.items()}
    ended = run("-c", PRINT, SECRET_KEY="", DATABASE_URL="", WATCHER_EXECUTOR="celery", **files)
    password = (deployment / "secrets" / "database-password").read_text().strip()
    assert ended.stderr == ""
    assert shlex.split(ended.stdout) == ["database", password, "broker:5672/watcher"]


SECRETS = {"SECRET_KEY": "secret-key", "DATABASE_URL": "database-url", "CELERY_BROKER_URL": "broker-url"}
PRINT = """
from watcher_site import settings
database = settings.DATABASES["default"]
print(database["HOST"], database["PASSWORD"], settings.CELERY_BROKER_URL.rpartition("@")[2])
"""


def test_compose_file_mounts_the_secrets_of_the_site() -> None:
    environment: dict[str, Any] = SITE["web"]["environment"]
    mounted = {f"{name}_FILE": f"/run/secrets/{secret}" for name, secret in SECRETS.items()}
    assert mounted.items() <= environment.items()
