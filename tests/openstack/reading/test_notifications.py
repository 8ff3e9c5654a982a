"""Notifications of a real Nova and a real Cinder, which update the cluster model between synchronizations."""

from collections.abc import Iterator

import openstack
import pytest

from cluster.models import ComputeNode, Server, Synchronization, Volume
from tests.broker import delete_queues
from tests.cluster.drivers.openstack.notifications.listener import CloudTopics
from tests.openstack.configuration import EXCHANGES, TOPICS
from tests.openstack.conftest import Nova
from tests.openstack.control_plane import PATIENCE
from tests.waiting import wait_for
from tests.watcher_site.notifications.listener import TRANSPORT_URL

pytestmark = [pytest.mark.openstack, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def listener(nova: Nova, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A listener with the exchanges of the services, which are deleted when they are unused."""
    monkeypatch.setenv("OS_CLOUD", "service")
    topics = CloudTopics()
    topics.exchanges, topics.topics = dict(EXCHANGES), dict(TOPICS)
    topics.start(f"{TRANSPORT_URL}?amqp_auto_delete=true")
    yield
    for process in topics.processes:
        process.kill()
        process.wait()
    delete_queues([topics.pool])


def place(server: str) -> tuple[str | None, str] | None:
    """Return the node and the state of a server in the site, or None."""
    return Server.objects.present().filter(uuid=server).values_list("node__hostname", "state").first()


def test_notifications_update_servers_and_compute_services(nova: Nova, listener: None) -> None:
    before = Synchronization.objects.get().succeeded_at
    server = nova.boot("web", "cmp1")
    wait_for(lambda: place(server) == ("cmp1", "active"), PATIENCE)
    nova.compute.live_migrate_server(server, host="cmp2", block_migration="auto")
    wait_for(lambda: place(server) == ("cmp2", "active"), PATIENCE)
    nova.compute.stop_server(server)
    wait_for(lambda: place(server) == ("cmp2", "stopped"), PATIENCE)
    [service] = nova.compute.services(binary="nova-compute", host="cmp1")
    nova.compute.disable_service(service.id, disabled_reason="by a person")
    wait_for(lambda: ComputeNode.objects.get(hostname="cmp1").disabled_reason == "by a person", PATIENCE)
    nova.compute.delete_server(server)
    wait_for(lambda: place(server) is None, PATIENCE)
    assert Synchronization.objects.get().succeeded_at == before


def test_notifications_create_and_delete_a_volume(nova: Nova, listener: None) -> None:
    storage = openstack.connect(cloud="service").block_storage
    volume = storage.create_volume(name="data", size=1)
    wait_for(lambda: Volume.objects.present().filter(uuid=volume.id, status="available").exists(), PATIENCE)
    storage.delete_volume(volume.id)
    wait_for(lambda: not Volume.objects.present().filter(uuid=volume.id).exists(), PATIENCE)
