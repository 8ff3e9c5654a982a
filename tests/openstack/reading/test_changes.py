"""Synchronizations with a cloud that changes or fails at the same time."""

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from cluster.drivers.base import load_driver
from cluster.drivers.openstack.reading import Reader
from tests.openstack.configuration import PAGE
from tests.openstack.conftest import Nova
from tests.openstack.control_plane import PATIENCE, ControlPlane
from tests.waiting import wait_for

pytestmark = pytest.mark.openstack


def test_list_is_read_again_if_its_marker_was_archived_between_pages(nova: Nova, control_plane: ControlPlane) -> None:
    for number in range(PAGE + 1):
        nova.boot(f"web-{number}", "cmp1")
    # Nova lists the newest servers first.
    last = nova.servers()[PAGE - 1].id
    calls = 0

    def delete_the_last_of_the_first_page() -> None:
        nonlocal calls
        calls += 1
        if calls == PAGE + 1:
            nova.compute.delete_server(last)
            wait_for(lambda: last not in {server.id for server in nova.servers()}, PATIENCE)
            # Nova accepts a deleted server as a marker until its rows are archived.
            delete = f"DELETE FROM nova_api.instance_mappings WHERE instance_uuid = '{last}'"  # noqa: S608
            control_plane.query(delete)

    reader = Reader(load_driver().access, delete_the_last_of_the_first_page)
    found = reader.read_list(lambda connection: connection.compute.servers(all_projects=True))
    assert len(found) == PAGE
    assert last not in {server.id for server in found}


def test_sync_without_nova_fails_with_status_1(nova: Nova, control_plane: ControlPlane, settings: Settings) -> None:
    control_plane.stop("nova-api")
    # A new process has no connection yet.
    load_driver().access.connection = None
    settings.OPENSTACK_WAIT = 0
    with pytest.raises(CommandError) as caught:
        call_command("sync_cluster")
    assert (caught.value.returncode, str(caught.value)[:27]) == (1, "The cloud does not answer: ")


def test_sync_without_permissions_fails_with_status_2(nova: Nova, settings: Settings) -> None:
    settings.OPENSTACK_CLOUD = "member"
    load_driver().access.connection = None
    with pytest.raises(CommandError, match=r"The cloud denies the site the permission: .*os-services") as caught:
        call_command("sync_cluster")
    load_driver().access.connection = None
    assert caught.value.returncode == 2
