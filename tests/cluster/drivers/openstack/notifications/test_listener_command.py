"""Settings with which the command listen_notifications refuses to start."""

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

pytestmark = pytest.mark.django_db


def test_command_requires_the_notification_url() -> None:
    with pytest.raises(CommandError, match=r"^WATCHER_CLOUD_NOTIFICATION_URL: set the address") as caught:
        call_command("listen_notifications")
    assert caught.value.returncode == 2


def test_command_is_refused_with_the_embedded_cloud(settings: Settings) -> None:
    settings.CLOUD_NOTIFICATION_URL = "rabbit://broker.example.org"
    with pytest.raises(CommandError, match="sends no notifications"):
        call_command("listen_notifications")


def test_unknown_option_of_the_url_is_refused(settings: Settings) -> None:
    settings.CLOUD = "cluster.drivers.openstack.OpenStackCloud"
    settings.CLOUD_NOTIFICATION_URL = "rabbit://broker.example.org/?no_such_option=1"
    with pytest.raises(CommandError, match=r"^WATCHER_CLOUD_NOTIFICATION_URL: ") as caught:
        call_command("listen_notifications")
    assert caught.value.returncode == 2
