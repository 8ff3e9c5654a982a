"""Power states and power changes of compute nodes by MAAS instead of Ironic."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from cluster.drivers.base import (
    CloudError,
    CloudMisconfigured,
    CloudUnavailable,
    NodeNotFound,
    OperationFailed,
    OperationRefused,
    cloud,
)
from cluster.models import ComputeNode
from cluster.operations.synchronization import synchronize
from tests.builders import make_node
from tests.cluster.drivers.openstack.cached_contents import write_cached_contents
from tests.cluster.emulator.maas import CONSUMER, SECRET, TOKEN, EmulatedMaas
from tests.cluster.emulator.nova import make_uuid
from tests.cluster.emulator.server import Emulator
from tests.watcher_site.site_process import run

pytestmark = pytest.mark.django_db
KEY = f"{CONSUMER}:{TOKEN}:{SECRET}"


@pytest.fixture
def maas(emulator: Emulator, settings: Settings) -> Iterator[EmulatedMaas]:
    """A MAAS with a machine for the first of two compute nodes of a cloud without Ironic."""
    emulator.offered.remove("baremetal")
    service = EmulatedMaas()
    service.start()
    settings.MAAS_URL, settings.MAAS_API_KEY = service.url, KEY
    service.add("compute1", "example.org")
    yield service
    service.stop()


@pytest.fixture
def node(maas: EmulatedMaas) -> str:
    write_cached_contents("two hosts, one in MAAS")
    return make_uuid("compute1")


def power_of(host: str) -> str | None:
    found: str | None = ComputeNode.objects.get(hostname=host).power_state
    return found


def test_synchronization_reads_the_power_states_from_maas(maas: EmulatedMaas) -> None:
    maas.add("compute2", power_state="off")
    synchronize()
    assert (power_of("compute1"), power_of("compute2")) == ("on", "off")
    assert maas.requests == [("GET", "/MAAS/api/2.0/machines/")]


def test_power_state_is_queried_from_the_power_controller(maas: EmulatedMaas, node: str) -> None:
    maas.machines["key0"]["power_state"] = "off"
    assert (cloud().find_node(node).power_state, cloud().find_power_state("compute1")) == ("off", "off")
    assert maas.requests[-1] == ("GET", "/MAAS/api/2.0/machines/key0/?op=query_power_state")


@pytest.mark.parametrize("state", ["unknown", "error"])
def test_power_state_other_than_on_and_off_is_unknown(maas: EmulatedMaas, node: str, state: str) -> None:
    maas.machines["key0"]["power_state"] = state
    assert cloud().find_node(node).power_state == state
    assert cloud().find_power_state("compute1") is None


@pytest.mark.parametrize("state", ["unknown", "error"])
def test_synchronization_keeps_the_last_known_power_state(maas: EmulatedMaas, node: str, state: str) -> None:
    ComputeNode.objects.update(power_state="off")
    maas.machines["key0"]["power_state"] = state
    synchronize()
    assert power_of("compute1") == "off"


def test_node_is_powered_off_and_on(maas: EmulatedMaas, node: str) -> None:
    cloud().power_off(node)
    assert (maas.machines["key0"]["power_state"], power_of("compute1")) == ("off", "off")
    cloud().power_on(node)
    assert (maas.machines["key0"]["power_state"], power_of("compute1")) == ("on", "on")
    sent = [path.partition("?")[2] for method, path in maas.requests if method == "POST"]
    assert sent == ["op=power_off", "op=power_on"]


def test_node_with_running_servers_is_not_powered_off(emulator: Emulator, maas: EmulatedMaas, node: str) -> None:
    emulator.nova.add_server("web", "compute1")
    with pytest.raises(CloudError, match="Compute node compute1 has 1 running server"):
        cloud().power_off(node)
    assert not [path for method, path in maas.requests if method == "POST"]


def test_error_of_the_power_controller_fails_the_operation(maas: EmulatedMaas, node: str) -> None:
    maas.machines["key0"]["error"] = "error"
    with pytest.raises(OperationFailed, match="Compute node compute1 did not go off: MAAS reports an error"):
        cloud().power_off(node)


# Assignment of machines to compute nodes.


def test_machine_in_a_maas_domain_is_found_by_its_short_name(maas: EmulatedMaas) -> None:
    maas.add("compute2", "maas", "off")
    synchronize()
    assert cloud().find_node(make_uuid("compute2")).power_state == "off"


def test_machine_in_another_domain_is_not_assigned_to_a_compute_node(maas: EmulatedMaas, emulator: Emulator) -> None:
    emulator.nova.hypervisors[make_uuid("compute2")]["hypervisor_hostname"] = "compute2.az1.example.org"
    maas.add("compute2", "az2.example.org", "off")
    synchronize()
    assert power_of("compute2") == "on"


def test_synchronization_continues_without_power_states_while_maas_is_unavailable(
    maas: EmulatedMaas, node: str
) -> None:
    maas.stop()
    remarks = synchronize().remarks
    maas.start()
    assert "MAAS does not answer: ConnectionError. Power states are unknown." in " ".join(remarks)


def test_fully_qualified_name_takes_precedence_over_the_short_name(maas: EmulatedMaas, node: str) -> None:
    maas.add("compute1", "elsewhere.example.org", "off")
    assert cloud().find_node(node).power_state == "on"


def test_several_machines_with_one_name_are_refused(emulator: Emulator, maas: EmulatedMaas, node: str) -> None:
    emulator.nova.hypervisors[make_uuid("compute2")]["hypervisor_hostname"] = "compute2"
    for domain in ("rack1", "rack2"):
        maas.add("compute2", domain)
    expected = "Several machines of MAAS may be compute node compute2: compute2.rack1, compute2.rack2"
    with pytest.raises(OperationRefused, match=expected):
        cloud().power_off(make_uuid("compute2"))
    assert expected in " ".join(synchronize().remarks)


def test_several_compute_nodes_with_one_short_name_are_refused(maas: EmulatedMaas, node: str) -> None:
    maas.add("compute2", "maas")
    make_node("compute2.elsewhere")
    with pytest.raises(OperationRefused, match=r"compute2 and compute2\.elsewhere may both be the machine"):
        cloud().power_off(make_uuid("compute2"))


def test_node_unknown_to_maas_is_not_found(maas: EmulatedMaas, node: str) -> None:
    with pytest.raises(NodeNotFound, match=r"compute2\.example\.org in MAAS not found"):
        cloud().find_node(make_uuid("compute2"))
    assert cloud().find_power_state("compute2") is None


# MAAS refuses a request, or is unavailable.


@pytest.mark.parametrize("status", [429, 503])
def test_query_is_retried_while_maas_is_unavailable(maas: EmulatedMaas, node: str, status: int) -> None:
    maas.fault = ("GET .*", status, 2)
    assert cloud().find_node(node).power_state == "on"


def test_power_change_is_not_retried(maas: EmulatedMaas, node: str) -> None:
    maas.fault = ("POST .*", 503, 1)
    with pytest.raises(CloudUnavailable, match="MAAS answered with status 503: The power controller is busy"):
        cloud().power_off(node)
    assert len([path for method, path in maas.requests if method == "POST"]) == 1


def test_polling_continues_while_maas_is_unavailable(maas: EmulatedMaas, node: str, settings: Settings) -> None:
    settings.OPENSTACK_ATTEMPTS = 1
    maas.fault = ("GET query_power_state", 503, 2)
    cloud().power_off(node)
    assert power_of("compute1") == "off"


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        ("Ready", OperationRefused, "MAAS refused it: Can't start node: it hasn't been allocated"),
        ("Locked", CloudMisconfigured, "MAAS denies the site the permission"),
    ],
)
def test_refusal_has_the_message_of_maas(
    maas: EmulatedMaas, node: str, status: str, kind: type[CloudError], message: str
) -> None:
    maas.machines["key0"]["status_name"] = status
    with pytest.raises(kind, match=message):
        cloud().power_off(node)


def test_wrong_api_key_is_refused_and_not_shown(maas: EmulatedMaas, node: str, settings: Settings) -> None:
    settings.MAAS_API_KEY = "a:b:a-secret"
    with pytest.raises(CloudMisconfigured, match="MAAS refuses WATCHER_MAAS_API_KEY") as caught:
        cloud().find_node(node)
    assert "a-secret" not in str(caught.value)


def test_url_of_another_server_is_reported(maas: EmulatedMaas, node: str, settings: Settings) -> None:
    settings.MAAS_URL = maas.url.removesuffix("/MAAS")
    with pytest.raises(CloudMisconfigured, match="WATCHER_MAAS_URL does not lead to MAAS"):
        cloud().find_node(node)


def test_unreachable_maas_raises_cloud_unavailable(maas: EmulatedMaas, node: str) -> None:
    maas.stop()
    with pytest.raises(CloudUnavailable, match="MAAS does not answer: ConnectionError"):
        cloud().find_node(node)
    maas.start()


def test_missing_authority_file_is_reported(maas: EmulatedMaas, node: str, settings: Settings, tmp_path: Path) -> None:
    settings.MAAS_URL, settings.MAAS_CAFILE = maas.url.replace("http:", "https:"), str(tmp_path / "gone.pem")
    with pytest.raises(CloudMisconfigured, match="WATCHER_MAAS_CAFILE"):
        cloud().find_node(node)


# Settings


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"WATCHER_MAAS_URL": "maas"}, "WATCHER_MAAS_URL: must begin with https:// or http://"),
        ({"WATCHER_MAAS_URL": "https://maas.example.org/MAAS"}, "WATCHER_MAAS_API_KEY: must be an API key of MAAS"),
        ({"WATCHER_MAAS_API_KEY": "only:two"}, "WATCHER_MAAS_API_KEY: must be an API key of MAAS"),
    ],
)
def test_invalid_settings_end_the_command_with_status_2(variables: dict[str, str], message: str) -> None:
    ended = run("manage.py", "check", **variables)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith(message)
