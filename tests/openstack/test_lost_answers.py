"""Operations without a response, because nova-api is killed."""

import signal

import pytest

from cluster.drivers.base import cloud
from cluster.models import Server
from tests.openstack.conftest import Background, Nova
from tests.openstack.control_plane import PATIENCE, ControlPlane
from tests.waiting import wait_for

pytestmark = pytest.mark.openstack


def test_migration_completes_if_nova_api_is_killed_before_its_response(
    nova: Nova, control_plane: ControlPlane, background: Background
) -> None:
    server = nova.boot("web", "cmp1")

    def kill() -> None:
        """Kill nova-api while it waits for the conductor, and restart it."""
        wait_for(lambda: nova.show(server).task_state == "migrating", PATIENCE)
        control_plane.kill("nova-api")
        control_plane.send_signal("nova-conductor", signal.SIGCONT)
        control_plane.start(["nova-api"])

    # The API answers a live migration when the conductor has checked both hosts.
    control_plane.send_signal("nova-conductor", signal.SIGSTOP)
    background(kill)
    cloud().live_migrate(server, "cmp2")
    assert Server.objects.get(uuid=server).node.hostname == "cmp2"
    assert [found.status for found in nova.migrations(server)] == ["completed"]
