"""The command refuses to listen where there is nothing to hear, in one line."""

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

pytestmark = pytest.mark.django_db


def test_without_the_address_of_a_broker_nothing_is_listened_to() -> None:
    with pytest.raises(CommandError, match=r"^WATCHER_CLOUD_NOTIFICATION_URL: set the address") as caught:
        call_command("listen_notifications")
    assert caught.value.returncode == 2


def test_the_embedded_cloud_sends_no_notifications(settings: Settings) -> None:
    settings.CLOUD_NOTIFICATION_URL = "rabbit://broker.example.org"
    with pytest.raises(CommandError, match="sends no notifications"):
        call_command("listen_notifications")


def test_an_option_of_the_address_that_does_not_exist_is_refused(settings: Settings) -> None:
    settings.CLOUD = "cluster.drivers.openstack.OpenStackCloud"
    settings.CLOUD_NOTIFICATION_URL = "rabbit://broker.example.org/?no_such_option=1"
    with pytest.raises(CommandError, match=r"^WATCHER_CLOUD_NOTIFICATION_URL: ") as caught:
        call_command("listen_notifications")
    assert caught.value.returncode == 2
