"""Compute nodes that MAAS switches on and off, in place of Ironic."""

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
    """A MAAS beside a cloud without Ironic, with a machine for the first of its two compute nodes."""
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


def test_a_reading_of_the_cloud_has_the_power_states_of_maas(maas: EmulatedMaas) -> None:
    maas.add("compute2", power_state="off")
    synchronize()
    assert (power_of("compute1"), power_of("compute2")) == ("on", "off")
    assert maas.requests == [("GET", "/MAAS/api/2.0/machines/")]


def test_a_node_is_found_with_the_state_that_its_power_controller_reports(maas: EmulatedMaas, node: str) -> None:
    maas.machines["key0"]["power_state"] = "off"
    assert (cloud().find_node(node).power_state, cloud().find_power_state("compute1")) == ("off", "off")
    assert maas.requests[-1] == ("GET", "/MAAS/api/2.0/machines/key0/?op=query_power_state")


@pytest.mark.parametrize("state", ["unknown", "error"])
def test_a_state_that_is_neither_on_nor_off_is_none(maas: EmulatedMaas, node: str, state: str) -> None:
    maas.machines["key0"]["power_state"] = state
    assert cloud().find_node(node).power_state == state
    assert cloud().find_power_state("compute1") is None


def test_a_node_is_switched_off_and_on(maas: EmulatedMaas, node: str) -> None:
    cloud().power_off(node)
    assert (maas.machines["key0"]["power_state"], power_of("compute1")) == ("off", "off")
    cloud().power_on(node)
    assert (maas.machines["key0"]["power_state"], power_of("compute1")) == ("on", "on")
    sent = [path.partition("?")[2] for method, path in maas.requests if method == "POST"]
    assert sent == ["op=power_off", "op=power_on"]


def test_a_node_with_running_servers_is_not_switched_off(emulator: Emulator, maas: EmulatedMaas, node: str) -> None:
    emulator.nova.add_server("web", "compute1")
    with pytest.raises(CloudError, match="Compute node compute1 has 1 running server"):
        cloud().power_off(node)
    assert not [path for method, path in maas.requests if method == "POST"]


def test_a_fault_of_the_power_controller_fails_the_operation(maas: EmulatedMaas, node: str) -> None:
    maas.machines["key0"]["error"] = "error"
    with pytest.raises(OperationFailed, match="Compute node compute1 did not go off: MAAS reports an error"):
        cloud().power_off(node)


# Which machine is that of a compute node


def test_a_machine_in_a_domain_of_maas_is_found_by_the_first_part_of_its_name(maas: EmulatedMaas) -> None:
    maas.add("compute2", "maas", "off")
    synchronize()
    assert cloud().find_node(make_uuid("compute2")).power_state == "off"


def test_a_machine_in_another_domain_is_not_that_of_a_compute_node(maas: EmulatedMaas, emulator: Emulator) -> None:
    emulator.nova.hypervisors[make_uuid("compute2")]["hypervisor_hostname"] = "compute2.az1.example.org"
    maas.add("compute2", "az2.example.org", "off")
    synchronize()
    assert power_of("compute2") == "on"


def test_a_reading_goes_on_without_power_states_while_maas_does_not_answer(maas: EmulatedMaas, node: str) -> None:
    maas.stop()
    remarks = synchronize().remarks
    maas.start()
    assert "MAAS does not answer: ConnectionError. Power states are unknown." in " ".join(remarks)


def test_the_whole_name_counts_before_its_first_part(maas: EmulatedMaas, node: str) -> None:
    maas.add("compute1", "elsewhere.example.org", "off")
    assert cloud().find_node(node).power_state == "on"


def test_several_machines_of_a_name_are_refused_and_named(emulator: Emulator, maas: EmulatedMaas, node: str) -> None:
    emulator.nova.hypervisors[make_uuid("compute2")]["hypervisor_hostname"] = "compute2"
    for domain in ("rack1", "rack2"):
        maas.add("compute2", domain)
    expected = "Several machines of MAAS may be compute node compute2: compute2.rack1, compute2.rack2"
    with pytest.raises(OperationRefused, match=expected):
        cloud().power_off(make_uuid("compute2"))
    assert expected in " ".join(synchronize().remarks)


def test_several_compute_nodes_of_a_first_part_are_refused(maas: EmulatedMaas, node: str) -> None:
    maas.add("compute2", "maas")
    make_node("compute2.elsewhere")
    with pytest.raises(OperationRefused, match=r"compute2 and compute2\.elsewhere may both be the machine"):
        cloud().power_off(make_uuid("compute2"))


def test_a_node_that_maas_does_not_know_is_not_found(maas: EmulatedMaas, node: str) -> None:
    with pytest.raises(NodeNotFound, match=r"compute2\.example\.org in MAAS not found"):
        cloud().find_node(make_uuid("compute2"))
    assert cloud().find_power_state("compute2") is None


# MAAS refuses, or does not answer


def test_a_query_is_repeated_if_maas_does_not_answer(maas: EmulatedMaas, node: str) -> None:
    maas.fault = ("GET .*", 503, 2)
    assert cloud().find_node(node).power_state == "on"


def test_a_change_is_not_repeated(maas: EmulatedMaas, node: str) -> None:
    maas.fault = ("POST .*", 503, 1)
    with pytest.raises(CloudUnavailable, match="MAAS answered with status 503: The power controller is busy"):
        cloud().power_off(node)
    assert len([path for method, path in maas.requests if method == "POST"]) == 1


def test_polling_goes_on_while_maas_does_not_answer(maas: EmulatedMaas, node: str, settings: Settings) -> None:
    settings.OPENSTACK_ATTEMPTS = 1
    maas.fault = ("GET query_power_state", 503, 2)
    cloud().power_off(node)
    assert power_of("compute1") == "off"


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        ("Ready", OperationRefused, "MAAS refused it: Can't start node: it hasn't been allocated"),
        ("Locked", CloudMisconfigured, "MAAS does not give us the right to do it"),
    ],
)
def test_a_refusal_has_the_message_of_maas(
    maas: EmulatedMaas, node: str, status: str, kind: type[CloudError], message: str
) -> None:
    maas.machines["key0"]["status_name"] = status
    with pytest.raises(kind, match=message):
        cloud().power_off(node)


def test_a_wrong_key_is_refused_without_showing_it(maas: EmulatedMaas, node: str, settings: Settings) -> None:
    settings.MAAS_API_KEY = "a:b:a-secret"
    with pytest.raises(CloudMisconfigured, match="MAAS refuses WATCHER_MAAS_API_KEY") as caught:
        cloud().find_node(node)
    assert "a-secret" not in str(caught.value)


def test_an_address_that_is_not_that_of_maas_is_named(maas: EmulatedMaas, node: str, settings: Settings) -> None:
    settings.MAAS_URL = maas.url.removesuffix("/MAAS")
    with pytest.raises(CloudMisconfigured, match="WATCHER_MAAS_URL does not lead to MAAS"):
        cloud().find_node(node)


def test_a_maas_that_is_not_there_is_unavailable(maas: EmulatedMaas, node: str) -> None:
    maas.stop()
    with pytest.raises(CloudUnavailable, match="MAAS does not answer: ConnectionError"):
        cloud().find_node(node)
    maas.start()


def test_a_missing_file_of_authorities_is_named(
    maas: EmulatedMaas, node: str, settings: Settings, tmp_path: Path
) -> None:
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
def test_wrong_settings_stop_the_start_with_one_line(variables: dict[str, str], message: str) -> None:
    ended = run("manage.py", "check", **variables)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith(message)
