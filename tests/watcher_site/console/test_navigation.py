"""The navigation: groups, the current entry, permissions, and addresses without a trailing slash."""

import re
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from watcher_site.accounts.projects import add_member
from watcher_site.templatetags.navigation import GROUPS, Place, find_place

pytestmark = pytest.mark.any_database

CURRENT = re.compile(r'aria-current="page"[^>]*>([^<]*)</a>')


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("/console/", "Overview"),
        ("/console/audits/", "Audits"),
        ("/console/audits/waiting/", "Servers"),
        ("/console/plans/00000000-0000-0000-0000-000000000000/preflight/", "Action plans"),
        ("/console/nodes/volumes/", "Compute nodes"),
        ("/console/clusters/policies/new/", "Clusters"),
        ("/console/marks/servers/00000000-0000-0000-0000-000000000000/mark/", "Servers"),
        ("/console/notifications/undelivered/", "Notifications"),
        ("/console/users/1/", "Users"),
        ("/console/account/password/", "Account"),
        ("/v1/docs/", "API"),
    ],
)
def test_path_belongs_to_a_navigation_entry(path: str, label: str) -> None:
    place = find_place(path)
    assert place is not None
    assert place.label == label


def test_page_marks_only_its_navigation_entry(client: Client, reader: User) -> None:
    client.force_login(reader)
    # In the navigation of wide screens, and in the menu of others.
    assert CURRENT.findall(client.get(reverse("plans:list")).content.decode()) == ["Action plans"] * 2


@pytest.mark.parametrize("path", ["/console/nothing/here/", f"/console/plans/{UUID(int=7)}/"])
def test_missing_page_marks_no_navigation_entry(client: Client, reader: User, path: str) -> None:
    client.force_login(reader)
    answer = client.get(path)
    assert answer.status_code == 404
    assert CURRENT.findall(answer.content.decode()) == []


@pytest.mark.parametrize("place", [place for group in GROUPS[1:] for place in group.places], ids=lambda one: one.name)
def test_list_title_is_its_navigation_label(client: Client, cloud_admin: User, place: Place) -> None:
    add_member("alice", "acme")
    client.force_login(cloud_admin)
    assert f"<h1>{place.label}</h1>" in client.get(place.address).content.decode()


def test_navigation_omits_pages_without_the_permission(client: Client, stranger: User) -> None:
    client.force_login(stranger)
    text = client.get(reverse("home")).content.decode()
    assert f'href="{reverse("plans:list")}"' not in text
    assert "Optimize" not in text
    assert reverse("trends") not in text


@pytest.mark.parametrize("path", ["/console/plans", "/console/clusters/profiles", f"/console/plans/{UUID(int=7)}"])
def test_path_without_a_trailing_slash_is_redirected(client: Client, db: None, path: str) -> None:
    answer = client.get(f"{path}?page=2")
    assert (answer.status_code, answer["Location"]) == (302, f"{path}/?page=2")


@pytest.mark.parametrize("path", ["/console/nothing", "/console/history/export.csv/no"])
def test_unknown_path_is_not_redirected(client: Client, db: None, path: str) -> None:
    assert client.get(path).status_code == 404
