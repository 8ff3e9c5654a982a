"""Servers that the site creates in a real Nova."""

from dataclasses import replace

import pytest

from cluster.drivers.base import NewServer, NoValidHost, cloud
from cluster.models import Server
from tests.openstack.conftest import Nova

pytestmark = pytest.mark.openstack


def test_a_second_request_with_the_same_token_creates_no_second_server(nova: Nova) -> None:
    wanted = NewServer("made", "tiny", token="a token", image=nova.image.id, metadata={"role": "web"})
    first, second = cloud().create_server(wanted), cloud().create_server(wanted)
    [found] = nova.servers()
    assert (first.uuid, second.uuid, found.status) == (found.id, found.id, "ACTIVE")
    assert found.metadata == {"role": "web", "watcher_token": "a token"}
    assert found.addresses
    row = Server.objects.get(uuid=found.id)
    assert (row.node.hostname, row.project_id) == (found.compute_host, nova.service.current_project_id)
    cloud().delete_server(found.id)
    assert nova.servers() == []


def test_a_server_that_nova_cannot_build_is_deleted_and_its_fault_is_reported(nova: Nova) -> None:
    nova.flavor("huge", 1, 400_000, 1)
    wanted = NewServer("made", "huge", token="a token", image=nova.image.id)
    with pytest.raises(NoValidHost, match="No valid host was found"):
        cloud().create_server(wanted)
    assert nova.servers() == []
    # The token is free again.
    assert cloud().create_server(replace(wanted, flavor="tiny")).status == "ACTIVE"
