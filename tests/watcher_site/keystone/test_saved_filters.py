"""The saved filters of Keystone users, who have no account."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from tests.watcher_site.keystone.identity import PROJECT, Keystone
from watcher_site.models import SavedFilter

pytestmark = pytest.mark.django_db
LIST = "cluster:servers"
KEYSTONE_LOGIN = {"username": "rosa", "password": "password of rosa", "domain": "Default"}


def show(browser: Client) -> str:
    return str(browser.get(reverse(LIST)).content.decode())


def test_keystone_user_has_separate_saved_filters(
    client: Client, cloud_admin: User, running: Keystone, settings: Settings
) -> None:
    settings.KEYSTONE_URL = f"{running.url}/v3"
    running.people = {"rosa": {PROJECT: ["admin", "member"]}}
    assert client.post(reverse("login-keystone"), KEYSTONE_LOGIN).status_code == 302
    filters = {"name": "web servers", "query": "name=web", "page": LIST}
    assert client.post(reverse("save-filters"), filters).status_code == 302
    saved = SavedFilter.objects.get()
    assert (saved.user, bool(saved.keystone_user_id)) == (None, True)
    assert "web servers" in show(client)
    other = Client()
    other.force_login(cloud_admin)
    assert "web servers" not in show(other)
    client.post(reverse("delete-filters", args=[saved.pk]))
    assert not SavedFilter.objects.exists()
