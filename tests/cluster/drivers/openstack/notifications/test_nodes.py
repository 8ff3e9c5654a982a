"""Nova's notifications about compute services and host aggregates change compute nodes and aggregates."""

import pytest

from cluster.models import ComputeNode, HostAggregate, Synchronization
from tests.cluster.drivers.openstack.notifications.conftest import read_cloud
from tests.cluster.drivers.openstack.notifications.samples import aggregate, ago, hear, service
from tests.cluster.emulator.nova import make_uuid
from tests.cluster.emulator.server import Emulator

pytestmark = pytest.mark.django_db


def node(host: str = "compute1") -> ComputeNode:
    found: ComputeNode = ComputeNode.objects.get(hostname=host)
    return found


def members(number: int = 1) -> list[str]:
    return [found.hostname for found in HostAggregate.objects.get(pk=number).nodes.order_by("hostname")]


def test_a_service_that_was_disabled_disables_its_node_with_the_reason(read: Emulator) -> None:
    hear("service.update", service(disabled=True, disabled_reason="maintenance"))
    assert (node().status, node().disabled_reason) == ("disabled", "maintenance")
    assert node("compute2").status == "enabled"


@pytest.mark.parametrize(
    ("before", "is_forced", "seen", "state"),
    [
        ("up", True, 10, "down"),
        ("down", False, 10, "up"),
        ("down", False, 10_000, "down"),
        ("up", False, 10_000, "up"),
    ],
)
def test_a_node_is_up_or_down_where_the_notification_shows_it(
    read: Emulator, before: str, is_forced: bool, seen: float, state: str
) -> None:
    ComputeNode.objects.update(state=before)
    hear("service.update", service(forced_down=is_forced, last_seen_up=ago(seen).isoformat()))
    assert (node().state, node().forced_down) == (state, is_forced)


def test_a_node_whose_service_was_never_seen_keeps_its_state(read: Emulator) -> None:
    ComputeNode.objects.update(state="down")
    hear("service.update", service(last_seen_up=None))
    assert node().state == "down"


def test_services_other_than_nova_compute_change_nothing(read: Emulator) -> None:
    assert not hear("service.update", service(binary="nova-conductor", disabled=True))
    assert not hear("service.delete", service(binary="nova-conductor"))
    assert (node().status, node().deleted_at) == ("enabled", None)


def test_a_node_that_nobody_has_read_yet_waits_for_the_next_reading(read: Emulator) -> None:
    assert not hear("service.create", service("compute9"))
    assert ComputeNode.objects.count() == 2


def test_a_service_that_was_deleted_takes_its_node_along(read: Emulator) -> None:
    assert hear("service.delete", service())
    assert node().deleted_at


def test_an_older_notification_does_not_enable_a_node_again(read: Emulator) -> None:
    hear("service.update", service(disabled=True), ago(1))
    assert not hear("service.update", service(), ago(2))
    assert not hear("service.delete", service(), ago(2))
    assert (node().status, node().deleted_at) == ("disabled", None)


def test_a_notification_from_before_the_last_reading_changes_no_node(read: Emulator) -> None:
    Synchronization.objects.update(succeeded_at=ago(5))
    assert not hear("service.update", service(disabled=True), ago(6))


def test_a_created_aggregate_is_known_with_its_number(read: Emulator) -> None:
    hear("aggregate.create.end", aggregate(number=7, power="low"))
    found = HostAggregate.objects.get(pk=7)
    assert (found.name, str(found.uuid), found.metadata) == ("racks", make_uuid("racks"), {"power": "low"})


def test_hosts_join_and_leave_an_aggregate(read: Emulator) -> None:
    hear("aggregate.add_host.end", aggregate("compute1", "compute2", "compute9"), ago(2))
    assert members() == ["compute1", "compute2"]
    hear("aggregate.remove_host.end", aggregate("compute2"), ago(1))
    assert members() == ["compute2"]


def test_an_aggregate_that_was_read_keeps_its_row(read: Emulator) -> None:
    read.nova.add_aggregate(1, "racks", "compute1")
    read_cloud()
    hear("aggregate.update_prop.end", aggregate("compute1", name="cabinets"))
    assert [found.name for found in HostAggregate.objects.all()] == ["cabinets"]


def test_a_deleted_aggregate_is_marked_deleted_and_stays_so(read: Emulator) -> None:
    hear("aggregate.create.end", aggregate(), ago(3))
    hear("aggregate.delete.end", aggregate(), ago(1))
    assert not hear("aggregate.add_host.end", aggregate("compute1"), ago(2))
    assert HostAggregate.objects.get().deleted_at


def test_an_older_notification_does_not_bring_a_host_back(read: Emulator) -> None:
    hear("aggregate.remove_host.end", aggregate(), ago(1))
    assert not hear("aggregate.add_host.end", aggregate("compute1"), ago(2))
    assert members() == []
