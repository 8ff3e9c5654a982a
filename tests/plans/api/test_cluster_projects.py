"""Clusters and nodes of projects through the API: permissions by project, from microversion 1.15 on."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoAssertNumQueries

from cluster.models import Cluster, Node, Server
from plans.models import ActionPlan
from tests.api import Caller, fault
from tests.builders import make_cluster, make_member, make_node, make_profile
from tests.conftest import person
from tests.plans.inline import run_waiting
from watcher_site.accounts.projects import add_member

pytestmark = pytest.mark.django_db

WEB = {"name": "web", "profile": "small web", "desired_capacity": 2}


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    make_node()
    make_profile("small web")
    return Caller(cloud_admin, "1.15")


@pytest.fixture
def member(api: Caller) -> Caller:
    """A member of the project acme without permissions."""
    user = person("mia")
    add_member("mia", "acme")
    return Caller(user, "1.15")


def names(caller: Caller, path: str, collection: str) -> list[str]:
    return sorted(row["name"] for row in caller.get(path).json()[collection])


def test_members_see_only_clusters_and_nodes_of_their_projects(member: Caller) -> None:
    for project in ("acme", "other", ""):
        cluster = make_cluster(f"of {project}", project_id=project)
        make_member(f"node of {project}", cluster=cluster, project_id=project)
    assert names(member, "/clusters", "clusters") == ["of acme"]
    assert names(member, "/nodes", "nodes") == ["node of acme"]
    assert member.get("/clusters/of acme").json()["project_id"] == "acme"
    for path in ("/clusters/of other", "/nodes/node of other"):
        assert member.get(path).status_code == 404


def test_administrators_see_all_clusters_and_filter_them_by_project(api: Caller) -> None:
    make_cluster("theirs", project_id="acme")
    make_cluster("of the site")
    assert names(api, "/clusters", "clusters") == ["of the site", "theirs"]
    assert names(api, "/clusters?project_id=acme", "clusters") == ["theirs"]


def test_members_are_refused_clusters_before_microversion_1_15(member: Caller, api: Caller) -> None:
    make_cluster("theirs", project_id="acme")
    member.headers = api.headers = {"OpenStack-API-Version": "infra-optim 1.14"}
    answers = [member.get("/clusters"), member.get("/clusters/theirs"), member.post("/clusters", WEB)]
    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert "project_id" not in api.get("/clusters/theirs").json()
    assert api.post("/clusters", WEB | {"project_id": "acme"}).status_code == 406
    assert api.get("/clusters?project_id=acme").status_code == 400


def test_members_create_scale_and_delete_clusters_with_servers_in_their_project(member: Caller) -> None:
    assert member.post("/clusters", WEB).status_code == 202
    run_waiting()
    assert member.post("/clusters/web/scale_out", {"count": 1}).status_code == 202
    run_waiting()
    assert (Cluster.objects.get().project_id, Cluster.objects.get().user_id) == ("acme", "mia")
    assert list(Server.objects.values_list("project_id", "user_id")) == [("acme", "mia")] * 3
    assert set(Node.objects.values_list("project_id", flat=True)) == {"acme"}
    assert member.delete("/clusters/web?force=true").status_code == 202
    run_waiting()
    assert not Server.objects.present().exists()


def test_members_neither_change_nor_create_clusters_of_other_projects(member: Caller) -> None:
    make_cluster("other", project_id="other")
    answers = [
        member.post("/clusters/other/check"),
        member.delete("/clusters/other"),
        member.patch("/clusters/other", [{"op": "replace", "path": "/name", "value": "mine"}]),
        member.post("/clusters/other/policies", {"policy": "grow"}),
    ]
    assert [answer.status_code for answer in answers] == [404, 404, 404, 403]
    answer = member.post("/clusters", WEB | {"project_id": "other"})
    assert (answer.status_code, fault(answer)) == (400, "project_id: must be one of your projects: acme.")
    assert not ActionPlan.objects.exists()


def test_members_add_nodes_only_to_clusters_of_their_projects(member: Caller) -> None:
    make_cluster("theirs", project_id="acme")
    make_cluster("other", project_id="other")
    assert member.post("/nodes", {"name": "more", "cluster": "theirs"}).status_code == 202
    assert Node.objects.get(name="more").project_id == "acme"
    answer = member.post("/nodes", {"name": "more", "cluster": "other"})
    assert (answer.status_code, fault(answer)) == (400, "cluster: there is no cluster other.")


def test_node_of_an_administrator_belongs_to_the_project_of_its_cluster(api: Caller) -> None:
    make_cluster("theirs", project_id="acme")
    assert api.post("/nodes", {"name": "more", "cluster": "theirs"}).status_code == 202
    assert Node.objects.get().project_id == "acme"


def test_node_cannot_join_a_cluster_of_another_project(api: Caller) -> None:
    cluster = make_cluster("theirs", project_id="acme")
    node = make_member("alone", status="ACTIVE")
    answer = api.post("/clusters/theirs/add_nodes", {"nodes": [str(node.uuid)]})
    assert answer.status_code == 409
    assert fault(answer) == f"nodes: node {node.uuid} does not belong to the project of cluster {cluster.uuid}."


def test_plan_only_is_refused_to_members_without_the_view_permission_for_plans(member: Caller) -> None:
    assert member.post("/clusters", WEB | {"plan_only": True}).status_code == 403


def test_cluster_creation_is_refused_when_its_servers_exceed_the_quota_of_the_project(
    member: Caller, settings: Any
) -> None:
    settings.QUOTAS = settings.QUOTAS | {"servers": 1}
    answer = member.post("/clusters", WEB)
    assert (answer.status_code, "Quota exceeded for servers of project acme" in fault(answer)) == (403, True)


def test_cluster_quota_of_a_project_ignores_clusters_of_other_projects(member: Caller, settings: Any) -> None:
    settings.QUOTAS = settings.QUOTAS | {"clusters": 1}
    make_cluster("other", project_id="other")
    assert member.post("/clusters", WEB).status_code == 202
    answer = member.post("/clusters", WEB | {"name": "another"})
    expected = "Quota exceeded for clusters of project acme: requested 1, but already used 1 of 1."
    assert (answer.status_code, fault(answer)) == (403, expected)


def test_cluster_list_query_count_of_a_member_does_not_depend_on_the_number_of_clusters(
    member: Caller, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(3):
        make_cluster(f"c{number}", size=2, project_id="acme")
    # The permissions of the group, the projects, and the rows.
    with django_assert_num_queries(3):
        assert len(member.get("/clusters").json()["clusters"]) == 3
