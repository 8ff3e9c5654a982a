"""Marks through the API: the body in every form, whose right it is, and what the answer tells."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from cluster.models import Server
from cluster.models.stacks import MARKED
from tests.api import Caller, fault
from tests.builders import make_member, make_node, make_server
from watcher_site.models import HistoryEntry, ProjectMember

pytestmark = pytest.mark.django_db
BAD_BODIES = [
    ({"mark_unhealthy": True, "foo": 1}, "Invalid keys in resource mark unhealthy {'foo'}"),
    ({"resource_status_reason": "x"}, "Missing mandatory (mark_unhealthy) key from mark unhealthy request"),
    ({}, "Missing mandatory (mark_unhealthy) key from mark unhealthy request"),
    (None, "Missing mandatory (mark_unhealthy) key from mark unhealthy request"),
    (
        {"mark_unhealthy": "yes"},
        'Unrecognized value "yes" for "mark_unhealthy", acceptable values are: true, false.',
    ),
    ({"mark_unhealthy": 1}, 'Unrecognized value "1" for "mark_unhealthy", acceptable values are: true, false.'),
    ({"mark_unhealthy": None}, 'Unrecognized value "None" for "mark_unhealthy", acceptable values are: true, false.'),
    (
        {"mark_unhealthy": True, "resource_status_reason": "x" * 10_000},
        "resource_status_reason: must not be longer than 255 characters.",
    ),
    ({"mark_unhealthy": True, "resource_status_reason": 7}, "resource_status_reason: must be a text."),
    ([], "An object with mark_unhealthy, and resource_status_reason if there is one, is expected."),
    ("true", "An object with mark_unhealthy, and resource_status_reason if there is one, is expected."),
]


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, "1.12")


@pytest.fixture
def server() -> Server:
    return make_server(node=make_node(), project_id="shop")


@pytest.fixture
def path(server: Server) -> str:
    return f"/servers/{server.uuid}"


@pytest.mark.parametrize(("body", "words"), BAD_BODIES, ids=lambda value: str(value)[:50])
def test_a_body_that_makes_no_sense_is_refused_in_words(api: Caller, path: str, body: Any, words: str) -> None:
    answer = api.patch(f"{path}/health", body)
    assert (answer.status_code, fault(answer)) == (400, words)
    assert Server.objects.get().unhealthy_reason is None


@pytest.mark.parametrize("value", [True, "true", "True", "TRUE"])
def test_true_may_be_a_word_in_any_case(api: Caller, server: Server, path: str, value: Any) -> None:
    answer = api.patch(f"{path}/health", {"mark_unhealthy": value})
    assert (answer.status_code, answer.json()) == (
        200,
        {
            "unhealthy": True,
            "reason": MARKED,
            "object_type": "server",
            "object_id": str(server.uuid),
            "object_name": "web-1",
        },
    )
    assert api.get(path).json()["unhealthy_reason"] == MARKED
    assert api.patch(f"{path}/health", {"mark_unhealthy": "FALSE"}).json()["unhealthy"] is False
    assert api.get(f"{path}/health").json()["reason"] is None


def test_a_node_is_marked_with_its_reason_and_by_way_of_its_server(api: Caller, server: Server, path: str) -> None:
    node = make_member(status="ACTIVE", server=server)
    told = api.patch(f"{path}/health", {"mark_unhealthy": True, "resource_status_reason": "slow"}).json()
    assert (told["object_type"], told["object_id"]) == ("node", str(node.uuid))
    shown = api.get(f"/nodes/{node.uuid}").json()
    assert (shown["status"], shown["unhealthy_reason"]) == ("ERROR", "slow")
    answer = api.patch(f"/nodes/{node.uuid}/health", {"mark_unhealthy": False})
    assert (answer.status_code, answer.json()["unhealthy"]) == (200, False)
    assert HistoryEntry.objects.filter(deed="node.clear", user="alice").exists()


def test_what_is_at_work_on_it_is_in_the_way(api: Caller, path: str) -> None:
    Server.objects.update(task_state="migrating")
    answer = api.patch(f"{path}/health", {"mark_unhealthy": True})
    assert (answer.status_code, "in task_state migrating" in fault(answer)) == (409, True)


def test_what_is_not_there_cannot_be_marked(api: Caller, path: str) -> None:
    Server.objects.soft_delete()
    assert api.patch(f"{path}/health", {"mark_unhealthy": True}).status_code == 404


def test_it_came_with_1_11(cloud_admin: User, path: str) -> None:
    before = Caller(cloud_admin, "1.10")
    assert before.patch(f"{path}/health", {"mark_unhealthy": True}).status_code == 406
    assert before.get(f"{path}/health").status_code == 406
    assert "unhealthy_reason" not in before.get(path).json()


def test_people_mark_the_servers_of_their_projects_and_readers_none(
    reader: User, stranger: User, server: Server, path: str
) -> None:
    ProjectMember.objects.create(user=stranger, project_id="shop")
    body = {"mark_unhealthy": True}
    assert Caller(reader, "1.12").patch(f"{path}/health", body).status_code == 403
    assert Caller(reader, "1.12").get(f"{path}/health").status_code == 200
    assert Caller(stranger, "1.12").patch(f"{path}/health", body).status_code == 200
    node = make_member(status="ACTIVE")
    assert Caller(reader, "1.12").patch(f"/nodes/{node.uuid}/health", body).status_code == 403
