"""The documented commands that install, connect and extend a site, run with paths and names of the tests."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from glob import glob
from pathlib import Path
from shutil import which
from urllib.parse import urlsplit

import psycopg
import pytest
from kombu import Connection

from cluster.models import ComputeNode
from tests.chaos.broker import OwnBroker
from tests.cluster.drivers.openstack.notifications.test_broker_permissions import CONTROL
from tests.cluster.emulator.placement import inventory
from tests.cluster.emulator.server import PASSWORD, Emulator
from tests.database import database_url
from tests.documentation.blocks import read_text
from tests.end_to_end.processes.test_restore import server_variables
from tests.processes import ROOT
from tests.watcher_site.site_process import KEY, VALID_ENVIRONMENT

pytestmark = [pytest.mark.longest, pytest.mark.slow, pytest.mark.any_database]
PROGRAMS = Path(sys.executable).parent
SYSTEM = {".venv/bin/python ": f"{sys.executable} ", "/srv/watcher-site/.venv/bin/": f"{PROGRAMS}/"}


def run(script: str, names: dict[str, str], variables: dict[str, str]) -> str:
    """Run commands in the checkout with other names, and return their output."""
    for documented, value in (SYSTEM | names).items():
        script = script.replace(documented, value)
    environment = {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", **variables}
    command = ["bash", "-euo", "pipefail", "-c", script]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{script}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


@pytest.fixture
def empty_database(db: None) -> Iterator[str]:
    """Return the URL of a database that does not exist yet."""
    name = f"{urlsplit(database_url()).path[1:]}_installed"
    drop(name)
    yield f"{database_url().rpartition('/')[0]}/{name}"
    drop(name)


def drop(name: str) -> None:
    with psycopg.connect(database_url(), autocommit=True) as own:
        own.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())


@pytest.mark.postgresql
@pytest.mark.programs("createdb")
def test_site_is_installed_by_command(empty_database: str, tmp_path: Path) -> None:
    (tmp_path / "secret-key").write_text(KEY)
    names = {
        "createdb watcher": f"createdb {empty_database.rpartition('/')[2]}",
        "postgres://watcher:…@db.example.org/watcher": empty_database,
        "/etc/watcher/": f"{tmp_path}/",
    }
    script = read_text("docs/operating.md", "## Installing for production", number=2)
    assert "user NAME in group cloud-admin" in run(script, names, server_variables())


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_settings_for_systemd_are_written_and_read(tmp_path: Path) -> None:
    names = {
        "postgres://watcher:PASSWORD@db.example.org/watcher": database_url(),
        "/etc/watcher": f"{tmp_path}/watcher",
        "-g watcher": f"-g {os.getegid()}",
        "chgrp watcher": f"chgrp {os.getegid()}",
        "su watcher -s /bin/sh": "sh",
    }
    written = read_text("docs/deployment.md", "## systemd", number=1)
    used = read_text("docs/deployment.md", "## systemd", number=2)
    assert "user NAME in group cloud-admin" in run(written + used, names, {})
    assert (tmp_path / "watcher" / "secret-key").stat().st_mode & 0o777 == 0o640


@pytest.mark.programs("systemctl")
def test_units_are_enabled(tmp_path: Path) -> None:
    folder = tmp_path / "etc" / "systemd" / "system"
    folder.mkdir(parents=True)
    lines = read_text("docs/deployment.md", "## systemd", number=3).splitlines(keepends=True)
    # The others need a running systemd.
    script = "".join(line for line in lines if not line.startswith(("systemctl daemon-reload", "systemctl start")))
    run(script, {"/etc/systemd/system/": f"{folder}/", "systemctl ": f"systemctl --root={tmp_path} "}, {})
    wanted = {file.name for file in folder.glob("*.wants/*")}
    assert {"watcher-site-web.service", "watcher-site-applier@2.service"} < wanted


@pytest.mark.skipif(not which("kubectl"), reason="needs a kubectl newer than that of Debian 12")
def test_secret_for_kubernetes_has_the_keys_of_the_manifests() -> None:
    lines = read_text("docs/deployment.md", "## Kubernetes", number=1).splitlines(keepends=True)
    # The others need a cluster.
    script = "".join(line for line in lines if not line.startswith("kubectl apply"))
    names = {"generic watcher-site": "generic watcher-site --dry-run=client --output=json"}
    made = json.loads(run(script, names, {}))
    manifests = "".join(file.read_text() for file in (ROOT / "docs" / "deployment" / "kubernetes").glob("*.yaml"))
    assert [key for key in made["data"] if f"/run/secrets/watcher-site/{key}" not in manifests] == []


def test_secrets_for_compose_are_written(tmp_path: Path) -> None:
    shutil.copy(ROOT / "docs" / "deployment" / "make-secrets.sh", tmp_path)
    run(f"cd {tmp_path}; {read_text('docs/deployment.md', '## One machine with compose', number=1)}", {}, {})
    assert (tmp_path / "secrets" / "secret-key").exists()


@pytest.mark.own_rabbitmq
def test_documented_user_of_the_broker_may_use_its_virtual_host(tmp_path: Path) -> None:
    script = read_text("docs/operating.md", "## Workers on several machines", number=0)
    with OwnBroker(tmp_path) as broker:
        (program,) = glob(CONTROL)[:1]
        names = {"rabbitmqctl ": f"{program} --node {broker.environment['RABBITMQ_NODENAME']} "}
        run(f"cd /; {script}", names, broker.environment)
        with Connection(f"amqp://watcher:PASSWORD@127.0.0.1:{broker.port}/watcher") as connection:
            assert connection.connect().connected


@pytest.mark.django_db(transaction=True)
@pytest.mark.postgresql
def test_real_cloud_is_read_by_command(tmp_path: Path) -> None:
    emulator = Emulator().start()
    node = emulator.nova.add_host("compute1")
    emulator.placement.inventories[node] = {"VCPU": inventory(16, 1, 4.0), "MEMORY_MB": inventory(32768, 512, 1.5)}
    clouds = read_text("docs/openstack.md", "## Connecting", language="yaml")
    clouds = clouds.replace("https://keystone.example.org/v3", f"{emulator.url}/identity/v3").replace("…", PASSWORD)
    (tmp_path / "clouds.yaml").write_text(clouds)
    script = read_text("docs/openstack.md", "## Connecting").replace(".venv/bin/pip install", "# pip install")
    variables = {"DATABASE_URL": database_url(), "OS_CLIENT_CONFIG_FILE": str(tmp_path / "clouds.yaml")}
    try:
        run(script, {}, VALID_ENVIRONMENT | variables)
    finally:
        emulator.stop()
    assert ComputeNode.objects.get().hostname == "compute1"


@pytest.fixture
def plug_ins(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a site with the plug-ins of the documentation in the package ``example``."""
    package = tmp_path / "example"
    package.mkdir()
    strategy = read_text("docs/writing-a-strategy.md", "## An example", language="python")
    action_type = read_text("docs/writing-an-action-type.md", "## An example", language="python", number=0)
    (package / "stop_forgotten.py").write_text(strategy)
    (package / "restart.py").write_text(action_type)
    return VALID_ENVIRONMENT | {"PYTHONPATH": str(tmp_path), "DATABASE_URL": f"sqlite:///{tmp_path}/site.sqlite3"}


def test_strategy_is_registered_by_command(plug_ins: dict[str, str]) -> None:
    script = read_text("docs/writing-a-strategy.md", "## An example", number=0)
    show = "python manage.py strategies list --format csv\n"
    assert "stop_forgotten" in run(script + show, {"python ": f"{sys.executable} "}, plug_ins)


def test_action_type_is_registered_by_command(plug_ins: dict[str, str]) -> None:
    script = read_text("docs/writing-an-action-type.md", "## An example", number=0)
    assert "no issues" in run(script, {"python ": f"{sys.executable} "}, plug_ins)


def test_shell_completion_is_installed_in_bash() -> None:
    script = read_text("docs/commands.md", "## Shell completion", number=0)
    assert "watcher-site" in run(f"{script}complete -p watcher-site", {}, {})


def test_shell_completion_is_installed_in_fish(tmp_path: Path) -> None:
    run(read_text("docs/commands.md", "## Shell completion", number=1), {}, {"HOME": str(tmp_path)})
    assert "watcher-site" in (tmp_path / ".config/fish/completions/watcher-site.fish").read_text()


@pytest.mark.programs("sqlite3")
def test_database_of_sqlite_is_copied_by_command(tmp_path: Path) -> None:
    (tmp_path / ".data").mkdir()
    command = read_text("docs/operating.md", "## Backup", number=0).splitlines()[1]
    create = "sqlite3 .data/watcher.sqlite3 'CREATE TABLE plans (id); INSERT INTO plans VALUES (7)'"
    shown = run(f"cd {tmp_path}; {create}; {command}\nsqlite3 watcher.sqlite3 .dump", {}, {})
    assert "INSERT INTO plans VALUES(7);" in shown


@pytest.mark.parametrize(
    "text",
    [
        read_text("README.md", "## Quick start", number=0),
        read_text("README.md", "## Development", number=0),
        read_text("docs/contributing.md", "### Running them", number=0),
        read_text("docs/tutorial.md", "## Start the site", number=0),
    ],
    ids=["quick start", "development", "tests", "tutorial"],
)
def test_make_has_the_documented_targets(text: str) -> None:
    lines = [line.replace("make ", "make --dry-run ", 1) for line in text.splitlines() if line.startswith("make ")]
    assert run("\n".join(lines), {}, {})
