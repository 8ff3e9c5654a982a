"""``manage.py register_endpoints`` with a real Keystone, and clients that find the site in its catalog."""

import os
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
import yaml
from django.core.management import CommandError, call_command
from pytest_django import Settings

from tests.documentation.blocks import read_text
from tests.documentation.test_documented_commands import management_commands
from tests.openstack.configuration import PASSWORD
from tests.openstack.keystone import KeystoneService

pytestmark = [pytest.mark.keystone, pytest.mark.django_db]
URL = "https://watcher.example.org"


def register(*arguments: str) -> list[str]:
    """Run the command, and return the lines of its output without the first, which names the cloud."""
    output = StringIO()
    call_command("register_endpoints", *arguments, stdout=output)
    return output.getvalue().splitlines()[1:]


def endpoints(keystone: KeystoneService, service_type: str = "infra-optim") -> dict[str, str]:
    identity = keystone.connect("admin", project_name="admin").identity
    (found,) = identity.services(type=service_type)
    return {one.interface: one.url for one in identity.endpoints(service_id=found.id)}


def test_service_and_endpoints_are_created(keystone: KeystoneService) -> None:
    lines = register(URL)
    assert endpoints(keystone) == dict.fromkeys(("public", "internal", "admin"), URL)
    assert lines[:2] == [
        "service watcher (infra-optim): created",
        f"public endpoint {URL} of watcher in RegionOne: created",
    ]


def test_documented_command_registers_the_site(keystone: KeystoneService) -> None:
    [(name, *arguments)] = management_commands(read_text("docs/authentication.md", "## Service catalog"))
    call_command(name, *arguments, stdout=StringIO())
    assert endpoints(keystone)["public"] == URL
    assert keystone.connect("admin", project_name="admin").identity.find_user("watcher")


def test_second_registration_changes_no_endpoint(keystone: KeystoneService) -> None:
    register(URL)
    assert [line.rpartition(": ")[2] for line in register(URL)] == ["unchanged"] * 4


def test_other_url_changes_existing_endpoints(keystone: KeystoneService) -> None:
    register("http://old.example.org")
    assert register(URL, "--interface", "public")[1].endswith(": changed from http://old.example.org")
    assert endpoints(keystone)["public"] == URL
    assert endpoints(keystone)["admin"] == "http://old.example.org"


def test_existing_service_of_the_type_with_another_name_is_refused(keystone: KeystoneService) -> None:
    identity = keystone.connect("admin", project_name="admin").identity
    identity.create_service(type="infra-optim", name="the old watcher")
    with pytest.raises(CommandError, match="has the service the old watcher of type infra-optim already"):
        register(URL)
    assert len(list(identity.services(type="infra-optim"))) == 1


def test_mounts_are_registered_with_separate_service_types(keystone: KeystoneService) -> None:
    register(URL, "--orchestration", "watcher-orchestration", "--compute", "watcher-compute")
    assert endpoints(keystone, "watcher-orchestration")["public"] == f"{URL}/orchestration/v1/%(project_id)s"
    assert endpoints(keystone, "watcher-compute")["public"] == f"{URL}/compute/v2.1"


def test_unknown_region_is_refused(keystone: KeystoneService) -> None:
    with pytest.raises(CommandError, match=r"Keystone has no region Two. It must be one of RegionOne."):
        register(URL, "--region", "Two")


def test_option_user_creates_a_user_that_can_log_in(keystone: KeystoneService, settings: Settings) -> None:
    settings.USER_PASSWORD = PASSWORD
    lines = register(URL, "--user", "optimizer")
    assert lines[-3:] == [
        "user optimizer: created",
        "role admin of optimizer in service: given",
        "role service of optimizer in service: given",
    ]
    assert keystone.token("optimizer", project_name="service")
    assert register(URL, "--user", "optimizer")[-3:] == [
        "user optimizer: unchanged, WATCHER_USER_PASSWORD is ignored",
        "role admin of optimizer in service: unchanged",
        "role service of optimizer in service: unchanged",
    ]


def test_unknown_role_creates_neither_user_nor_service(keystone: KeystoneService) -> None:
    with pytest.raises(CommandError, match=r"--role: Keystone has no role chief."):
        register(URL, "--user", "nobody", "--role", "chief")
    identity = keystone.connect("admin", project_name="admin").identity
    assert identity.find_user("nobody") is None
    assert not list(identity.services(type="infra-optim"))


def test_wrong_password_is_refused_with_status_2(keystone: KeystoneService, tmp_path: Path) -> None:
    file = tmp_path / "clouds.yaml"
    file.write_text(file.read_text().replace(PASSWORD, "wrong"))
    with pytest.raises(CommandError, match="The cloud rejects the credentials of the site") as refusal:
        register(URL)
    assert refusal.value.returncode == 2


def login_of_rosa(keystone: KeystoneService) -> dict[str, str]:
    return {
        "auth_url": f"{keystone.url}/v3",
        "username": "rosa",
        "password": PASSWORD,
        "project_name": "shop",
        "user_domain_id": "default",
        "project_domain_id": "default",
    }


def write_openrc(login: dict[str, str], folder: Path) -> dict[str, str]:
    """Return the variables of a file openrc."""
    return {"OS_IDENTITY_API_VERSION": "3", **{f"OS_{name.upper()}": value for name, value in login.items()}}


def write_clouds_yaml(login: dict[str, str], folder: Path) -> dict[str, str]:
    """Write a file clouds.yaml, and return the variables that select its cloud."""
    file = folder / "rosa.yaml"
    file.write_text(yaml.safe_dump({"clouds": {"shop": {"auth": login, "region_name": "RegionOne"}}}))
    return {"OS_CLIENT_CONFIG_FILE": str(file), "OS_CLOUD": "shop"}


@pytest.mark.parametrize("write", [write_openrc, write_clouds_yaml])
@pytest.mark.django_db(transaction=True)
def test_command_line_client_finds_the_site_in_the_catalog(
    registered_site: str,
    keystone: KeystoneService,
    tmp_path: Path,
    write: Callable[[dict[str, str], Path], dict[str, str]],
) -> None:
    variables = write(login_of_rosa(keystone), tmp_path)
    environment = {**variables, "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    command = [str(Path(sys.executable).with_name("openstack")), "optimize", "service", "list", "-f", "json"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.strip()) == (0, "[]"), ended.stderr


@pytest.mark.django_db(transaction=True)
def test_library_finds_the_site_in_the_catalog(registered_site: str, keystone: KeystoneService) -> None:
    from watcherclient.client import get_client

    session = keystone.connect("rosa", project_name="shop").session
    client = get_client("1", session=session, endpoint_type="internal", region_name="RegionOne")
    assert client.action_plan.list() == []
