"""Operations on servers of an OpenStack cloud, also with failures of Nova."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from pytest_django import Settings

from cluster.drivers.base import CloudError, OperationFailed, OperationRefused, ServerNotFound, cloud
from cluster.models import Server
from tests.cluster.emulator.nova import make_uuid
from tests.cluster.emulator.server import CONTINUE, Emulator

pytestmark = pytest.mark.django_db
NO_VALID_HOST = "No valid host was found. There are not enough hosts available."


def host(emulator: Emulator, server: str) -> str:
    return str(emulator.nova.servers[server]["OS-EXT-SRV-ATTR:host"])


def status(emulator: Emulator, server: str) -> str:
    return str(emulator.nova.servers[server]["status"])


def refusal(work: Callable[..., Any], *arguments: Any) -> str:
    with pytest.raises(CloudError) as caught:
        work(*arguments)
    return str(caught.value)


# Reading.


def test_server_is_found_with_its_state(emulator: Emulator, server: str) -> None:
    found = cloud().find_server(server)
    assert (found.uuid, found.name, found.status, found.host) == (server, "web", "ACTIVE", "compute1")
    assert (found.task_state, found.flavor) == (None, "m1.small")


def test_found_server_updates_its_row(emulator: Emulator, server: str) -> None:
    emulator.nova.servers[server] |= {"OS-EXT-SRV-ATTR:host": "compute2", "OS-EXT-STS:vm_state": "paused"}
    cloud().find_server(server)
    row = Server.objects.get(uuid=server)
    assert (row.node.hostname, row.state) == ("compute2", "paused")


def test_server_created_after_the_last_synchronization_is_recorded(emulator: Emulator, server: str) -> None:
    cloud().find_server(emulator.nova.add_server("new", "compute2"))
    assert Server.objects.get(name="new").node.hostname == "compute2"


def test_deleted_server_is_not_found_and_marked_deleted(emulator: Emulator, server: str) -> None:
    del emulator.nova.servers[server]
    with pytest.raises(ServerNotFound, match=f"Instance {server} not found"):
        cloud().find_server(server)
    assert Server.objects.get(uuid=server).deleted_at


# Migrating.


@pytest.mark.parametrize("kind", ["live_migrate", "cold_migrate"])
def test_server_is_migrated_to_the_destination(emulator: Emulator, server: str, kind: str) -> None:
    emulator.nova.add_host("compute0")
    getattr(cloud(), kind)(server, "compute2")
    assert (host(emulator, server), status(emulator, server)) == ("compute2", "ACTIVE")


@pytest.mark.parametrize("kind", ["live_migrate", "cold_migrate"])
def test_destination_is_chosen_by_nova_by_default(emulator: Emulator, server: str, kind: str) -> None:
    getattr(cloud(), kind)(server)
    assert host(emulator, server) == "compute2"


def test_live_migration_is_not_forced_and_its_storage_is_chosen_by_nova(emulator: Emulator, server: str) -> None:
    cloud().live_migrate(server, "compute2")
    assert emulator.nova.bodies == [{"os-migrateLive": {"host": "compute2", "block_migration": "auto"}}]


def test_migrated_server_updates_its_row(emulator: Emulator, server: str) -> None:
    cloud().live_migrate(server)
    row = Server.objects.get(uuid=server)
    assert (row.node.hostname, row.task_state, row.operation_owner) == ("compute2", None, "")


def test_stopped_server_is_cold_migrated_and_stays_stopped(emulator: Emulator, server: str) -> None:
    emulator.nova.servers[server] |= {"status": "SHUTOFF", "OS-EXT-STS:vm_state": "stopped"}
    cloud().cold_migrate(server)
    assert (host(emulator, server), status(emulator, server)) == ("compute2", "SHUTOFF")


def test_automatically_confirmed_cold_migration_succeeds(emulator: Emulator, server: str) -> None:
    emulator.nova.confirms_automatically = True
    cloud().cold_migrate(server)
    assert (host(emulator, server), status(emulator, server)) == ("compute2", "ACTIVE")


def test_checkpoint_is_called_during_a_migration(emulator: Emulator, server: str) -> None:
    emulator.readings = 5
    calls: list[str] = []
    cloud().live_migrate(server, None, lambda: calls.append(status(emulator, server)))
    assert calls.count("MIGRATING") == 5


def test_live_migration_without_a_valid_host_is_refused_with_the_message_of_nova(
    emulator: Emulator, server: str
) -> None:
    emulator.nova.services.clear()
    assert refusal(cloud().live_migrate, server) == f"The cloud refused it: {NO_VALID_HOST}"


def test_cold_migration_without_a_valid_host_fails_with_the_message_of_nova(emulator: Emulator, server: str) -> None:
    emulator.nova.services.clear()
    message = refusal(cloud().cold_migrate, server)
    assert message == f"Instance {server} is still on compute1 after its migration: {NO_VALID_HOST}"


def test_unknown_destination_is_refused(emulator: Emulator, server: str) -> None:
    message = refusal(cloud().live_migrate, server, "nowhere")
    assert message == "The cloud refused it: Compute host nowhere could not be found."


@pytest.mark.parametrize("kind", ["live_migrate", "cold_migrate"])
def test_failed_migration_has_the_reason(emulator: Emulator, server: str, kind: str) -> None:
    emulator.nova.failing = "stay"
    message = refusal(getattr(cloud(), kind), server)
    assert message == f"Instance {server} is still on compute1 after its migration: The hypervisor did not do it."


def test_server_in_error_after_its_migration_has_the_reason(emulator: Emulator, server: str) -> None:
    emulator.nova.failing = "error"
    assert refusal(cloud().live_migrate, server).endswith("after its migration: The hypervisor broke.")
    assert Server.objects.get(uuid=server).state == "error"


def test_migration_to_another_host_than_requested_fails(emulator: Emulator, server: str) -> None:
    emulator.nova.add_host("compute3")
    cloud().cold_migrate(server, "compute2")
    emulator.nova.choose = lambda server, wanted: "compute3"  # type: ignore[method-assign]
    assert refusal(cloud().cold_migrate, server, "compute1") == f"Instance {server} went to compute3, not to compute1"


def test_busy_server_is_refused_without_a_request(emulator: Emulator, server: str) -> None:
    emulator.nova.servers[server]["OS-EXT-STS:task_state"] = "rebuilding"
    with pytest.raises(OperationRefused, match="is busy: rebuilding"):
        cloud().live_migrate(server)
    assert emulator.count("POST .*/action") == 0


def test_conflict_has_the_message_of_nova(emulator: Emulator, server: str) -> None:
    emulator.nova.servers[server] |= {"status": "SHUTOFF", "OS-EXT-STS:vm_state": "stopped"}
    message = refusal(cloud().live_migrate, server)
    assert message == (
        f"The cloud refused it: Cannot 'os-migrateLive' instance {server} while it is in vm_state stopped"
    )


def test_server_deleted_during_a_migration_is_not_found(emulator: Emulator, server: str) -> None:
    def delete() -> None:
        if status(emulator, server) == "MIGRATING":
            del emulator.nova.servers[server]

    with pytest.raises(ServerNotFound):
        cloud().live_migrate(server, None, delete)
    assert Server.objects.get(uuid=server).deleted_at


# Failures of Nova.


def test_operation_is_awaited_after_a_gateway_timeout(emulator: Emulator, server: str) -> None:
    emulator.fail("POST .*/action", 504, after=True)
    cloud().live_migrate(server)
    assert (host(emulator, server), emulator.count("POST .*/action")) == ("compute2", 1)


def test_operation_is_awaited_after_a_lost_connection(emulator: Emulator, server: str) -> None:
    emulator.fail("POST .*/action", after=True)
    cloud().live_migrate(server)
    assert (host(emulator, server), emulator.count("POST .*/action")) == ("compute2", 1)


def test_operation_is_awaited_after_a_lost_connection_and_failed_reads(emulator: Emulator, server: str) -> None:
    def fail_reads() -> None:
        emulator.fail(f"GET .*servers/{server}", times=8)

    emulator.fail("POST .*/action", after=True)
    emulator.faults[0].callback = fail_reads
    cloud().live_migrate(server)
    assert (host(emulator, server), emulator.count("POST .*/action")) == ("compute2", 1)


def test_operation_started_after_a_gateway_timeout_is_awaited(emulator: Emulator, server: str) -> None:
    emulator.fail("POST .*/action", 504)
    checks = 0

    def begin_late() -> None:
        nonlocal checks
        checks += 1
        if checks == 3:
            emulator.nova.live_migrate(emulator.nova.servers[server], {})

    cloud().live_migrate(server, None, begin_late)
    assert host(emulator, server) == "compute2"


def test_operation_not_started_after_a_gateway_timeout_fails_after_the_timeout(
    emulator: Emulator, server: str, settings: Settings
) -> None:
    settings.OPENSTACK_TIMEOUT = 1
    emulator.fail("POST .*/action", 504, message="Nova did not answer.")
    assert refusal(cloud().live_migrate, server).endswith(": Nova did not answer.")


def test_confirmation_is_requested_again_after_an_error(emulator: Emulator, server: str) -> None:
    def lose_the_confirmation() -> None:
        if status(emulator, server) == "RESIZE" and not emulator.faults:
            emulator.fail("POST .*/action", 503, times=5)

    cloud().cold_migrate(server, "compute2", lose_the_confirmation)
    assert (host(emulator, server), status(emulator, server)) == ("compute2", "ACTIVE")


def test_refused_confirmation_has_the_message_of_nova(emulator: Emulator, server: str) -> None:
    emulator.fail("POST .*/action", CONTINUE)
    emulator.fail("POST .*/action", 400, message="The resize cannot be confirmed.")
    assert refusal(cloud().resize, server, "m1.large") == "The cloud refused it: The resize cannot be confirmed."


def test_operation_refused_as_unavailable_is_not_requested_again(emulator: Emulator, server: str) -> None:
    emulator.fail("POST .*/action", 503, message="Overloaded.")
    assert refusal(cloud().live_migrate, server).endswith(": Overloaded.")
    assert emulator.count("POST .*/action") == 1


def test_failed_reads_during_a_migration_are_retried(emulator: Emulator, server: str) -> None:
    emulator.readings = 6

    def fail_reads() -> None:
        if status(emulator, server) == "MIGRATING" and not emulator.faults:
            emulator.fail("GET /compute/v2.1/servers/", 503, times=2)
            emulator.fail("GET /compute/v2.1/servers/", times=1)

    cloud().live_migrate(server, None, fail_reads)
    assert host(emulator, server) == "compute2"


def test_hanging_operation_fails_after_its_timeout(emulator: Emulator, server: str, settings: Settings) -> None:
    settings.OPENSTACK_OPERATION_TIMEOUT = 0.05
    emulator.readings = float("inf")
    with pytest.raises(OperationFailed) as caught:
        cloud().live_migrate(server)
    assert str(caught.value) == (
        f"Migrating instance {server} was not over after 0.05 seconds, and is no longer waited for"
    )


def test_operation_fails_after_its_timeout_if_the_cloud_becomes_unavailable(
    emulator: Emulator, server: str, settings: Settings
) -> None:
    settings.OPENSTACK_OPERATION_TIMEOUT = 0.05
    emulator.fail(f"GET .*servers/{server}", 503, times=0)
    fault = emulator.faults[0]

    def fail_reads() -> None:
        fault.times = 99 if status(emulator, server) == "MIGRATING" else 0

    message = refusal(cloud().live_migrate, server, None, fail_reads)
    assert "is no longer waited for (The cloud answered with status 503 at 127.0.0.1:" in message


def test_migration_from_a_failed_host_is_not_awaited(emulator: Emulator, server: str, settings: Settings) -> None:
    settings.OPENSTACK_OPERATION_TIMEOUT = 60
    emulator.readings = float("inf")

    def go_down() -> None:
        emulator.nova.services[make_uuid("service of compute1")]["state"] = "down"

    assert refusal(cloud().live_migrate, server, None, go_down) == (
        f"Migrating instance {server} is no longer waited for: nova-compute service compute1 is down"
    )


def test_error_message_of_nova_is_written_in_one_line(emulator: Emulator, server: str) -> None:
    emulator.fail("POST .*/action", 400, message="Unexpected API Error.\nPlease report this.")
    assert refusal(cloud().live_migrate, server) == "The cloud refused it: Unexpected API Error. Please report this."


def test_fault_message_of_nova_is_written_in_one_line(emulator: Emulator, server: str) -> None:
    emulator.nova.failing = "error"

    def break_in_two_lines() -> None:
        if fault := emulator.nova.servers[server].get("fault"):
            fault["message"] = "It broke.\nTwice."

    emulator.fail(f"GET .*servers/{server}$", CONTINUE, times=99, callback=break_in_two_lines)
    assert refusal(cloud().live_migrate, server).endswith("after its migration: It broke. Twice.")


# Stopping, starting, resizing.


def test_server_is_stopped(emulator: Emulator, server: str) -> None:
    cloud().stop(server)
    assert (status(emulator, server), Server.objects.get(uuid=server).state) == ("SHUTOFF", "stopped")


def test_server_is_started(emulator: Emulator, server: str) -> None:
    cloud().stop(server)
    cloud().start(server)
    assert (status(emulator, server), Server.objects.get(uuid=server).state) == ("ACTIVE", "active")


def test_failed_stop_has_the_reason(emulator: Emulator, server: str) -> None:
    emulator.nova.failing = "stay"
    assert refusal(cloud().stop, server) == f"Instance {server} is in status ACTIVE: The hypervisor did not do it."


@pytest.mark.parametrize("flavor", ["f2", "m1.large"])
def test_server_is_resized_and_the_resize_confirmed(emulator: Emulator, server: str, flavor: str) -> None:
    cloud().resize(server, flavor)
    assert status(emulator, server) == "ACTIVE"
    row = Server.objects.get(uuid=server)
    assert (row.flavor, row.vcpus, row.memory) == ("m1.large", 4, 8192)


def test_stopped_server_is_resized_and_stays_stopped(emulator: Emulator, server: str) -> None:
    cloud().stop(server)
    cloud().resize(server, "m1.large")
    assert status(emulator, server) == "SHUTOFF"


def test_unknown_flavor_is_refused(emulator: Emulator, server: str) -> None:
    assert refusal(cloud().resize, server, "huge") == "Flavor huge not found"


def test_resize_to_the_current_flavor_is_refused_with_the_message_of_nova(emulator: Emulator, server: str) -> None:
    message = refusal(cloud().resize, server, "m1.small")
    assert message == "The cloud refused it: When resizing, instances must change flavor!"


def test_failed_resize_has_the_reason(emulator: Emulator, server: str) -> None:
    emulator.nova.failing = "stay"
    message = refusal(cloud().resize, server, "m1.large")
    assert message == f"Instance {server} has flavor m1.small after its resize: The hypervisor did not do it."


def test_flavor_id_takes_precedence_over_flavor_name(emulator: Emulator, server: str) -> None:
    emulator.nova.add_flavor("m1.large", "odd")
    assert cloud().find_flavor("m1.large").name == "odd"


def test_metadata_is_updated_and_removed_by_key(emulator: Emulator, server: str) -> None:
    emulator.nova.servers[server]["metadata"] = {"role": "web", "tier": "1", "watcher_token": "t"}
    for _ in range(2):
        cloud().change_metadata(server, {"role": "proxy", "server": "yes"}, ["tier", "absent"])
    changed = {"role": "proxy", "server": "yes", "watcher_token": "t"}
    assert emulator.nova.servers[server]["metadata"] == changed
    assert Server.objects.get(uuid=server).metadata == changed


def test_metadata_of_a_server_in_error_cannot_be_changed(emulator: Emulator, server: str) -> None:
    emulator.nova.servers[server]["status"] = "ERROR"
    with pytest.raises(CloudError):
        cloud().change_metadata(server, {"role": "proxy"})


def test_metadata_of_an_unknown_server_cannot_be_changed(emulator: Emulator) -> None:
    with pytest.raises(ServerNotFound):
        cloud().change_metadata(str(uuid4()), {"role": "proxy"})
