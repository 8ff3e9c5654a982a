"""Events of servers in the console: details for users with the permission, summaries for others."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries, Settings

from actions.models import Action
from cluster.models import Server
from tests.builders import make_operation, make_server
from watcher_site.configuration.policies import ADMIN, EVENT_DETAILS

pytestmark = pytest.mark.django_db


@pytest.fixture
def server() -> Server:
    server: Server = make_server()
    done = make_operation(server, "rebuild", "Retry", "Error", request_id="req-1", user_id="rosa").action
    Action.objects.filter(pk=done.pk).update(status_message="Action failed in execute: as people may read")
    return server


def page(client: Client, user: User, name: str, uuid: object) -> str:
    client.force_login(user)
    return " ".join(client.get(reverse(name, args=[uuid])).content.decode().split())


def test_server_page_shows_the_operations_on_it(client: Client, cloud_admin: User, server: Server) -> None:
    shown = page(client, cloud_admin, "cluster:server", server.uuid)
    for words in ("rebuild", "req-1", "by <strong><bdi>rosa</bdi></strong>", "It was Error.", "It was Retry."):
        assert words in shown
    assert "No events yet." in page(client, cloud_admin, "cluster:server", make_server("other").uuid)


@pytest.mark.parametrize("name", ["cluster:server", "actions:detail", "plans:detail"])
def test_user_without_the_permission_for_faults_sees_only_that_the_action_failed(
    client: Client, reader: User, cloud_admin: User, server: Server, settings: Settings, name: str
) -> None:
    settings.POLICIES = {EVENT_DETAILS: ADMIN}
    done = Action.objects.get()
    uuid = {"cluster:server": server.uuid, "actions:detail": done.uuid, "plans:detail": done.action_plan.uuid}[name]
    shown = page(client, reader, name, uuid)
    assert "It was Error." not in shown
    assert "It was Retry." in shown
    assert "as people may read" not in shown
    assert "Action failed in execute." in shown
    assert "It was Error." in page(client, cloud_admin, name, uuid)


def test_server_page_query_count_does_not_depend_on_the_number_of_operations(
    client: Client, cloud_admin: User, server: Server, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    client.force_login(cloud_admin)
    url = reverse("cluster:server", args=[server.uuid])
    with CaptureQueriesContext(connection) as few:
        client.get(url)
    for number in range(15):
        make_operation(server, "stop", "Success", "Success", request_id=f"req-more-{number}")
    with django_assert_num_queries(len(few)):
        assert "Show more events" in client.get(url).content.decode()
    assert "Show more events" not in client.get(f"{url}?operations=all").content.decode()
