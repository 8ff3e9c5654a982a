"""Profiles through the API."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from cluster.models import Profile
from tests.api import Caller, fault
from tests.builders import make_flavor, make_profile
from watcher_site.models import HistoryEntry

pytestmark = pytest.mark.django_db

WEB = {"name": "web", "spec": {"flavor": "small", "image": "an image", "metadata": {"role": "web"}}}


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    make_flavor("small", flavor_id="f1")
    return Caller(cloud_admin, "1.12")


def replace(path: str, value: Any) -> list[dict[str, Any]]:
    return [{"op": "replace", "path": path, "value": value}]


def test_profile_is_created_shown_and_deleted(api: Caller) -> None:
    made = api.post("/profiles", WEB | {"metadata": {"team": "shop"}})
    uuid = made.json()["uuid"]
    assert (made.status_code, made["Location"]) == (201, f"http://testserver/v1/profiles/{uuid}")
    shown = api.get("/profiles/WEB").json()
    assert shown == made.json()
    assert (shown["name"], shown["type"]) == ("web", "os.nova.server-1.0")
    assert (shown["spec"], shown["metadata"]) == (WEB["spec"], {"team": "shop"})
    assert api.delete(f"/profiles/{uuid}").status_code == 204
    assert api.get(f"/profiles/{uuid}").status_code == 404


@pytest.mark.parametrize("path", ["/profiles", "/profiles/detail", "/profiles/web"])
def test_profiles_are_not_available_before_1_12(cloud_admin: User, path: str) -> None:
    make_profile("web")
    assert Caller(cloud_admin, "1.11").get(path).status_code == 406


def test_flavor_is_accepted_by_id(api: Caller) -> None:
    assert api.post("/profiles", {"name": "web", "spec": {"flavor": "f1"}}).status_code == 201


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": None}, "name. Value: 'None'. Mandatory field missing."),
        ({"name": "  "}, "name"),
        ({"name": "x" * 256}, "name"),
        ({"spec": None}, "spec. Value: 'None'. Mandatory field missing."),
        ({"spec": []}, "spec: [] is not of type 'object'"),
        ({"spec": {}}, "spec: 'flavor' is a required property"),
        ({"spec": {"flavor": 1}}, "spec: flavor: 1 is not of type 'string'"),
        ({"spec": {"flavor": "huge"}}, "spec: flavor: the cloud has no flavor huge."),
        ({"spec": {"flavor": "small", "image": ""}}, "spec: image: '' should be non-empty"),
        ({"spec": {"flavor": "small", "metadata": {"a": 1}}}, "spec: metadata.a: 1 is not of type 'string'"),
        ({"spec": {"flavor": "small", "key": "x"}}, "spec: Additional properties are not allowed ('key'"),
        ({"metadata": "x"}, "metadata"),
        ({"foo": 1}, "Unknown attribute for argument profile: foo"),
        ({"uuid": "x"}, "Cannot set read only field."),
    ],
)
def test_invalid_profile_is_refused_and_not_created(api: Caller, changes: dict[str, Any], words: str) -> None:
    answer = api.post("/profiles", WEB | changes)
    assert (answer.status_code, words in fault(answer)) == (400, True), fault(answer)
    assert not Profile.objects.exists()


def test_duplicate_profile_name_is_refused(api: Caller) -> None:
    make_profile("web")
    answer = api.post("/profiles", WEB | {"name": "Web"})
    assert (answer.status_code, fault(answer)) == (409, "name: another profile is called Web.")


def test_name_of_a_deleted_profile_can_be_used_again(api: Caller) -> None:
    api.post("/profiles", WEB)
    api.delete("/profiles/web")
    assert api.post("/profiles", WEB).status_code == 201


def test_profile_name_and_metadata_are_changed(api: Caller) -> None:
    profile = make_profile("web")
    steps = [*replace("/name", "front"), {"op": "add", "path": "/metadata/team", "value": "shop"}]
    shown = api.patch(f"/profiles/{profile.uuid}", steps).json()
    assert (shown["name"], shown["metadata"]) == ("front", {"team": "shop"})
    assert shown["updated_at"]


@pytest.mark.parametrize(
    ("patch", "status"),
    [
        (replace("/spec", {"flavor": "small"}), 400),
        (replace("/spec/flavor", "small"), 400),
        (replace("/type", "x"), 400),
        (replace("/name", ""), 400),
        (replace("/name", 7), 400),
        (replace("/metadata", []), 400),
        (replace("/name", "other"), 409),
        ([{"op": "remove", "path": "/name"}], 400),
    ],
)
def test_invalid_patch_changes_nothing(api: Caller, patch: Any, status: int) -> None:
    make_profile("other")
    profile = make_profile("web")
    assert api.patch(f"/profiles/{profile.uuid}", patch).status_code == status
    again = Profile.objects.get(pk=profile.pk)
    assert (again.name, again.spec, again.updated_at) == ("web", {"flavor": "small"}, None)


def test_profile_list_is_paged(api: Caller) -> None:
    for name in ("c", "a", "b"):
        make_profile(name)
    first = api.get("/profiles?sort_key=name&limit=2").json()
    assert [row["name"] for row in first["profiles"]] == ["a", "b"]
    second = api.get(first["next"].removeprefix("http://testserver/v1")).json()
    assert [row["name"] for row in second["profiles"]] == ["c"]
    assert "spec" not in first["profiles"][0]


def test_profile_list_is_filtered_by_name(api: Caller) -> None:
    make_profile("web")
    make_profile("other")
    assert [row["name"] for row in api.get("/profiles/detail?name=WEB").json()["profiles"]] == ["web"]
    assert api.get("/profiles?flavor=small").status_code == 400


@pytest.mark.parametrize("count", [1, 10])
def test_profile_list_query_count_does_not_depend_on_the_number_of_rows(
    api: Caller, count: int, django_assert_num_queries: Any
) -> None:
    for number in range(count):
        make_profile(str(number))
    api.get("/goals")
    with django_assert_num_queries(1):
        assert len(api.get("/profiles/detail").json()["profiles"]) == count


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("POST", "/profiles", WEB), ("PATCH", "/profiles/web", replace("/name", "x")), ("DELETE", "/profiles/web", None)],
)
def test_reader_may_read_and_not_change_profiles(api: Caller, reader: User, method: str, path: str, body: Any) -> None:
    make_profile("web")
    reading = Caller(reader, "1.12")
    assert reading.get("/profiles/web").status_code == 200
    assert reading.call(method, path, body).status_code == 403
    assert Profile.objects.get().name == "web"


def test_user_without_permission_is_refused(api: Caller, stranger: User) -> None:
    assert Caller(stranger, "1.12").get("/profiles").status_code == 403


def test_networks_user_data_and_tags_are_accepted_from_1_15_on(api: Caller, cloud_admin: User) -> None:
    spec = {"flavor": "small", "networks": [{"network": "backend"}], "user_data": "secret", "tags": ["shop"]}
    answer = api.post("/profiles", {"name": "web", "spec": spec})
    assert (answer.status_code, "spec.networks" in fault(answer)) == (406, True)
    made = Caller(cloud_admin, "1.15").post("/profiles", {"name": "web", "spec": spec})
    assert (made.status_code, made.json()["spec"]) == (201, spec)
    assert "user_data" not in HistoryEntry.objects.get(deed="profile.create").details["spec"]


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"networks": []}, "spec: networks: [] should be non-empty"),
        ({"networks": [{"port": "p", "fixed_ip": "10.0.0.1"}]}, "spec: networks.0: fixed_ip: is for a network"),
        (
            {"block_device_mapping_v2": [{"source_type": "image"}]},
            "spec: block_device_mapping_v2.0: uuid: is required",
        ),
        ({"availability_zone": "nowhere"}, "spec: availability_zone: the cloud has no availability zone nowhere."),
        ({"personality": []}, "spec: Additional properties are not allowed ('personality'"),
    ],
)
def test_invalid_server_property_is_refused(
    api: Caller, cloud_admin: User, properties: dict[str, Any], words: str
) -> None:
    answer = Caller(cloud_admin, "1.15").post("/profiles", {"name": "web", "spec": {"flavor": "small", **properties}})
    assert (answer.status_code, words in fault(answer)) == (400, True), fault(answer)
