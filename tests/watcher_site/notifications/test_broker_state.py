"""The reported state of the message broker, also if the relay is silent or the broker never answers."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from actions.graph.proposals import ProposedAction
from plans.planning.proposals import propose
from watcher_site.models import Delivery, Notification, Service
from watcher_site.notifications.broker_state import broker_state
from watcher_site.notifications.relay import dispatch
from watcher_site.outbox.writing import listeners

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def broker(settings: Settings) -> None:
    settings.NOTIFICATION_URL = "fake://"
    listeners.forget()


def test_a_silent_relay_is_a_problem_while_messages_wait() -> None:
    propose([ProposedAction("nop", {"message": "a"})])
    state = broker_state()
    assert (state.waiting, state.problem) == (
        Notification.objects.count(),
        "No watcher-relay is active: notifications wait.",
    )
    assert state.oldest == Notification.objects.earliest("created_at").created_at


def test_a_silent_relay_is_no_problem_while_no_message_waits() -> None:
    assert (broker_state().waiting, broker_state().problem) == (0, None)


def test_a_broker_that_accepts_messages_and_never_answers_is_reported() -> None:
    Service.register(Service.RELAY, "ctrl-1")
    propose([ProposedAction("nop", {"message": "a"})])
    dispatch()
    assert broker_state().problem is None
    Delivery.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    assert str(broker_state().problem).startswith("The broker has not answered yet: the oldest waits since ")
