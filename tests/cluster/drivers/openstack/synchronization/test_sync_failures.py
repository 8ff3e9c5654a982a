"""Failures of ``manage.py sync_cluster``: a message of one line, an exit status, and no partial write."""

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from cluster.drivers.base import cloud
from cluster.models import ComputeNode, Server, Synchronization
from cluster.synchronization.mirroring import mirror
from tests.cluster.emulator.server import CONTINUE, Emulator
from tests.database import database_url

pytestmark = pytest.mark.django_db
MISCONFIGURED, UNAVAILABLE = 2, 1


def sync() -> str:
    out = io.StringIO()
    call_command("sync_cluster", stdout=out)
    return out.getvalue()


def refusal() -> tuple[int, str]:
    with pytest.raises(CommandError) as caught:
        sync()
    return caught.value.returncode, str(caught.value)


def test_unreachable_cloud_fails_with_status_1(emulator: Emulator, settings: Settings) -> None:
    emulator.stop()
    settings.OPENSTACK_ATTEMPTS = 1
    code, message = refusal()
    emulator.start()
    assert code == UNAVAILABLE
    assert message.startswith("The cloud does not answer: ")
    assert "Unable to establish connection to http://127.0.0.1:" in message
    assert "HTTPConnectionPool" not in message


def test_timeout_of_a_service_fails_with_status_1(emulator: Emulator, settings: Settings) -> None:
    settings.OPENSTACK_TIMEOUT = 1
    settings.OPENSTACK_ATTEMPTS = 2
    emulator.fail("servers/detail", 500, times=9, seconds=2)
    code, message = refusal()
    assert (code, message.endswith("servers/detail timed out")) == (UNAVAILABLE, True)
    assert emulator.count("servers/detail") == 2


def test_request_is_retried_after_a_server_error(emulator: Emulator) -> None:
    emulator.fail("servers/detail", 503, times=2)
    assert sync().endswith("0 gone\n")


def test_request_is_retried_after_a_broken_connection(emulator: Emulator) -> None:
    emulator.fail("os-hypervisors/detail")
    assert sync().endswith("0 gone\n")


def test_permanent_server_error_fails_with_status_1(emulator: Emulator) -> None:
    emulator.fail("servers/detail", 503, times=99, message="The database is gone.")
    code, message = refusal()
    assert code == UNAVAILABLE
    assert message.startswith("The cloud answered with status 503 at 127.0.0.1:")
    assert message.endswith(": The database is gone.")


def test_unavailable_ironic_fails_with_status_1(emulator: Emulator) -> None:
    emulator.fail("baremetal/v1/nodes", 503, times=99)
    code, message = refusal()
    assert (code, message.startswith("The cloud answered with status 503")) == (UNAVAILABLE, True)


def test_queries_of_ironic_are_sent_as_often_as_those_of_other_services(
    emulator: Emulator, settings: Settings
) -> None:
    settings.OPENSTACK_ATTEMPTS = 2
    emulator.fail("baremetal/v1/nodes", 503, times=99)
    refusal()
    assert emulator.count("baremetal/v1/nodes") == 2


def test_server_error_of_keystone_fails_with_status_1(emulator: Emulator) -> None:
    emulator.fail("auth/tokens", 500, times=99)
    code, message = refusal()
    assert (code, message.split(":")[0]) == (UNAVAILABLE, "The cloud does not answer")


def test_wrong_password_fails_with_status_2(emulator: Emulator) -> None:
    emulator.password = "another"
    code, message = refusal()
    assert (code, message.split(":")[0]) == (MISCONFIGURED, "The cloud rejects the credentials of the site")


def test_expired_token_is_renewed(emulator: Emulator) -> None:
    sync()
    emulator.tokens.clear()
    assert sync().endswith("0 gone\n")


def test_missing_permission_fails_with_status_2(emulator: Emulator) -> None:
    emulator.fail("os-services", 403, message="Policy doesn't allow os_compute_api:os-services:list.")
    code, message = refusal()
    assert code == MISCONFIGURED
    assert message == (
        "The cloud denies the site the permission: Policy doesn't allow os_compute_api:os-services:list."
    )


def test_cloud_missing_from_clouds_yaml_fails_with_status_2(emulator: Emulator, settings: Settings) -> None:
    settings.OPENSTACK_CLOUD = "another"
    code, message = refusal()
    assert code == MISCONFIGURED
    assert message == "OS_CLOUD and clouds.yaml do not define a usable cloud: Cloud another was not found."


def test_cloud_without_nova_fails_with_status_2(emulator: Emulator) -> None:
    emulator.offered.remove("compute")
    assert refusal() == (MISCONFIGURED, "The cloud has no Nova: its catalog has no endpoint of type compute")


def test_unsupported_nova_version_fails_with_status_2(emulator: Emulator) -> None:
    emulator.nova.newest = "2.30"
    assert refusal() == (MISCONFIGURED, "Nova must speak microversion 2.56 or later")


@pytest.mark.parametrize("status", [0, 503])
def test_unavailable_nova_is_not_reported_as_an_unsupported_version(emulator: Emulator, status: int) -> None:
    emulator.fail("/compute/v2.1", status, times=99)
    code, message = refusal()
    assert (code, message.startswith("The cloud ")) == (UNAVAILABLE, True)
    assert "microversion" not in message


def test_list_is_read_again_if_a_server_is_deleted_between_two_pages(emulator: Emulator) -> None:
    emulator.page_size = 2
    for number in range(6):
        emulator.nova.add_server(f"web-{number}", "compute1")
    last = list(emulator.nova.servers)[1]
    emulator.fail("servers/detail", CONTINUE, after=True, callback=lambda: emulator.nova.servers.pop(last))
    assert "0 gone" in sync()
    assert Server.objects.present().count() == 5


def test_synchronization_fails_if_a_list_changes_at_each_attempt(emulator: Emulator) -> None:
    emulator.page_size = 1
    for number in range(3):
        emulator.nova.add_server(f"web-{number}", "compute1")
    emulator.fail("servers/detail", 400, times=99, message="marker [x] not found")
    code, message = refusal()
    assert (code, message) == (UNAVAILABLE, "A list of the cloud changed while it was read: marker [x] not found")
    assert emulator.count("servers/detail") == 3


def test_response_other_than_json_fails_with_status_1(emulator: Emulator) -> None:
    emulator.fail("os-aggregates", 200)
    code, message = refusal()
    assert (code, message.split(":")[0]) == (UNAVAILABLE, "The cloud's response is invalid")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda server: server["flavor"].update(vcpus=None), "vcpus"),
        (lambda server: server.update(id="42"), "badly formed hexadecimal UUID string"),
    ],
)
def test_values_violating_database_constraints_are_reported_without_their_row(
    emulator: Emulator, spoil: Callable[[dict[str, Any]], None], reason: str
) -> None:
    server = emulator.nova.add_server("web", "compute1", metadata={"password": "confidential"})
    spoil(emulator.nova.servers[server])
    code, message = refusal()
    assert (code, reason in message, "confidential" in message) == (UNAVAILABLE, True, False)
    assert message.startswith("The tables of the site do not accept an object of the cloud: ")
    assert (Synchronization.objects.get().problem, Server.objects.exists()) == (message, False)


def test_embedded_cloud_cannot_be_synchronized() -> None:
    code, message = refusal()
    assert (code, message.split(":")[0]) == (MISCONFIGURED, "WATCHER_CLOUD")


def test_failed_synchronization_writes_nothing(emulator: Emulator) -> None:
    emulator.nova.add_server("web", "compute1")
    emulator.fail("snapshots/detail", 500, times=99)
    refusal()
    assert (ComputeNode.objects.count(), Server.objects.count()) == (0, 0)


def test_failure_is_recorded_until_the_next_success(emulator: Emulator) -> None:
    emulator.fail("snapshots/detail", 500, times=3)
    _, message = refusal()
    kept = Synchronization.current()
    sync()
    assert (kept.problem, kept.holder) == (message, None)
    assert Synchronization.current().problem == ""


def test_row_written_during_the_synchronization_is_not_overwritten(emulator: Emulator) -> None:
    server = emulator.nova.add_server("web", "compute1")
    sync()
    began = timezone.now()
    contents = cloud().read_contents()
    emulator.nova.servers[server]["OS-EXT-SRV-ATTR:host"] = "compute2"
    cloud().find_server(server)
    mirror(contents, began)
    assert Server.objects.get(uuid=server).node.hostname == "compute2"


def test_server_created_during_the_synchronization_is_not_deleted(emulator: Emulator) -> None:
    sync()
    began = timezone.now()
    contents = cloud().read_contents()
    cloud().find_server(emulator.nova.add_server("web", "compute1"))
    mirror(contents, began)
    assert Server.objects.present().filter(name="web").exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_command_line_error_is_one_line(emulator: Emulator, tmp_path: Path) -> None:
    emulator.password = "another"
    environment = {
        "PATH": "",
        "SECRET_KEY": "0123456789" * 6,
        "WATCHER_CLOUD": "cluster.drivers.openstack.OpenStackCloud",
        "OS_CLOUD": "emulated",
        "OS_CLIENT_CONFIG_FILE": str(tmp_path / "clouds.yaml"),
        "DATABASE_URL": database_url(),
    }
    command = [sys.executable, "manage.py", "sync_cluster"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (MISCONFIGURED, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "CommandError: The cloud rejects the credentials of the site: The request you have made requires auth"
    )
