"""The reported state of the message broker, with an inactive relay or without confirmations."""

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


def test_inactive_relay_is_a_problem_while_notifications_wait() -> None:
    propose([ProposedAction("nop", {"message": "a"})])
    state = broker_state()
    assert (state.waiting, state.problem) == (
        Notification.objects.count(),
        "No watcher-relay is active: notifications wait.",
    )
    assert state.oldest == Notification.objects.earliest("created_at").created_at


def test_inactive_relay_is_no_problem_without_waiting_notifications() -> None:
    assert (broker_state().waiting, broker_state().problem) == (0, None)


def test_broker_that_never_confirms_is_reported() -> None:
    Service.register(Service.RELAY, "ctrl-1")
    propose([ProposedAction("nop", {"message": "a"})])
    dispatch()
    assert broker_state().problem is None
    Delivery.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    assert str(broker_state().problem).startswith("The broker has not answered yet: the oldest waits since ")
