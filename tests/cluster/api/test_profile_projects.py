"""Profiles of projects through the API: permissions to read, change and use them, from microversion 1.16 on."""

import pytest
from django.contrib.auth.models import User

from cluster.models import Cluster, Node, Profile
from tests.api import Caller, fault
from tests.builders import make_cluster, make_flavor, make_member, make_profile
from tests.conftest import person
from watcher_site.accounts.projects import add_member

pytestmark = pytest.mark.django_db
SPEC = {"flavor": "small"}
RENAMING = [{"op": "replace", "path": "/name", "value": "other"}]


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    make_flavor("small")
    return Caller(cloud_admin, "1.16")


@pytest.fixture
def member(api: Caller) -> Caller:
    """A member of the project acme without any permission. Each project has a profile."""
    user = person("mia")
    add_member("mia", "acme")
    for project in ("acme", "other", ""):
        make_profile(f"of {project or 'none'}", project_id=project)
    return Caller(user, "1.16")


def test_member_sees_profiles_of_own_project_and_of_no_project(member: Caller) -> None:
    shown = {row["name"]: row["project_id"] for row in member.get("/profiles").json()["profiles"]}
    assert shown == {"of acme": "acme", "of none": ""}
    uuids = Profile.objects.values_list("project_id", "uuid")
    answers = {project: member.get(f"/profiles/{uuid}").status_code for project, uuid in uuids}
    assert answers == {"acme": 200, "": 200, "other": 404}


def test_member_creates_changes_and_deletes_profiles_of_own_project(member: Caller) -> None:
    made = member.post("/profiles", {"name": "web", "spec": SPEC})
    assert (made.status_code, made.json()["project_id"]) == (201, "acme")
    path = f"/profiles/{made.json()['uuid']}"
    assert member.patch(path, [{"op": "replace", "path": "/name", "value": "front"}]).json()["name"] == "front"
    assert member.delete(path).status_code == 204


@pytest.mark.parametrize(("project", "status"), [("", 403), ("other", 404)])
def test_member_cannot_change_profiles_of_other_projects(member: Caller, project: str, status: int) -> None:
    path = f"/profiles/{Profile.objects.get(project_id=project).uuid}"
    assert [member.patch(path, RENAMING).status_code, member.delete(path).status_code] == [status] * 2
    answer = member.post("/profiles", {"name": "web", "spec": SPEC, "project_id": project})
    assert (answer.status_code, fault(answer)) == (400, "project_id: must be one of your projects: acme.")


def test_administrator_sets_and_filters_by_any_project(api: Caller) -> None:
    for project in ("acme", ""):
        assert api.post("/profiles", {"name": "web", "spec": SPEC, "project_id": project}).status_code == 201
    assert [row["project_id"] for row in api.get("/profiles?project_id=acme").json()["profiles"]] == ["acme"]
    assert api.get("/profiles/web").status_code == 400
    answer = api.post("/profiles", {"name": "Web", "spec": SPEC, "project_id": "acme"})
    assert (answer.status_code, fault(answer)) == (409, "name: another profile is called Web.")


def test_before_1_16_profiles_require_permissions_and_have_no_project(member: Caller, api: Caller) -> None:
    member.headers = api.headers = {"OpenStack-API-Version": "infra-optim 1.15"}
    paths = ("/profiles", "/profiles/of acme")
    assert [member.get(path).status_code for path in paths] == [403, 403]
    assert "project_id" not in api.get("/profiles/of acme").json()
    assert api.post("/profiles", {"name": "web", "spec": SPEC, "project_id": "acme"}).status_code == 406
    assert api.post("/profiles", {"name": "web", "spec": SPEC}).status_code == 201
    assert Profile.objects.get(name="web").project_id == ""
    assert api.get("/profiles?project_id=acme").status_code == 400


@pytest.mark.parametrize(("profile", "status"), [("of acme", 202), ("of none", 202), ("of other", 400)])
def test_clusters_and_nodes_are_created_from_profiles_of_own_project_or_of_no_project(
    member: Caller, profile: str, status: int
) -> None:
    identifier = str(Profile.objects.get(name=profile).uuid)
    cluster = make_cluster("theirs", project_id="acme", profile=Profile.objects.get(name="of none"))
    answers = [
        member.post("/clusters", {"name": "web", "profile": identifier}),
        member.post("/nodes", {"name": "alone", "profile": identifier}),
        member.post("/nodes", {"name": "more", "profile": identifier, "cluster": "theirs"}),
    ]
    assert [answer.status_code for answer in answers] == [status] * 3
    assert Cluster.objects.exclude(pk=cluster.pk).exists() is Node.objects.exists() is (status == 202)


def test_change_to_a_profile_of_another_project_is_refused(member: Caller) -> None:
    make_member("alone", project_id="acme", status="ACTIVE", profile=Profile.objects.get(name="of acme"))
    foreign = Profile.objects.get(project_id="other")
    make_cluster("theirs", project_id="acme", profile=Profile.objects.get(name="of acme"))
    change = [{"op": "replace", "path": "/profile", "value": str(foreign.uuid)}]
    for path in ("/nodes/alone", "/clusters/theirs"):
        answer = member.patch(path, change)
        assert (answer.status_code, fault(answer)) == (400, f"profile: there is no profile {foreign.uuid}.")


def test_profile_of_own_project_takes_precedence_over_profile_of_no_project(member: Caller) -> None:
    own = make_profile("Of None", project_id="acme")
    assert member.post("/clusters", {"name": "web", "profile": "of none"}).status_code == 202
    assert Cluster.objects.get(name="web").profile == own
