"""A relay counts its deliveries by the kind of the receiver and their outcome."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests.watcher_site.monitoring.samples import growth_of
from tests.watcher_site.notifications.receiver import Receiver, receiving
from tests.watcher_site.notifications.relaying import notify, relay, subscribe_to

pytestmark = pytest.mark.django_db(transaction=True)
NAME = "watcher_notification_deliveries_total"


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    settings.WEBHOOK_PRIVATE_ADDRESSES = True
    settings.WEBHOOK_PAUSE = settings.POLL_INTERVAL = 0
    settings.WEBHOOK_ATTEMPTS = 3
    with receiving() as one:
        subscribe_to(one.url)
        yield one


def test_delivered_notifications_are_counted(receiver: Receiver) -> None:
    notify(number=2)
    with growth_of(NAME, receiver="webhook", outcome="delivered") as delivered:
        relay()
    assert delivered.value == 2


def test_retries_and_dead_letters_are_counted(receiver: Receiver) -> None:
    receiver.answer = lambda event: 500
    notify()
    with (
        growth_of(NAME, receiver="webhook", outcome="retried") as retried,
        growth_of(NAME, receiver="webhook", outcome="given_up") as given_up,
    ):
        relay()
    assert (retried.value, given_up.value) == (2, 1)


def test_unavailable_broker_is_counted(settings: Settings) -> None:
    settings.NOTIFICATION_URL = "rabbit://guest:guest@127.0.0.1:1/"
    notify()
    with growth_of("watcher_broker_errors_total", broker="notifications") as errors:
        relay()
    assert errors.value >= 1
