"""The lag of a listener: the age of the oldest message that it has not handled."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from structlog.testing import capture_logs

from cluster.drivers.openstack.notifications.listener import Listener, Progress
from tests.cluster.drivers.openstack.notifications.samples import ago
from watcher_site.models import Service
from watcher_site.refusals import Invalid


class Queue:
    """A broker that returns these numbers of waiting messages in order."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = list(numbers)

    def count_waiting(self) -> int:
        return self.numbers.pop(0)


def refuse() -> int:
    raise Invalid("access refused for user watcher")


@pytest.fixture
def progress() -> Progress:
    found = Progress()
    found.newest = ago(100)
    return found


def test_lag_is_the_age_of_the_current_message(progress: Progress) -> None:
    progress.current = ago(5)
    assert 5 <= progress.lag(is_behind=True) < 50


def test_lag_is_the_age_of_the_newest_handled_message_while_messages_wait(progress: Progress) -> None:
    assert 100 <= progress.lag(is_behind=True) < 150


def test_empty_queue_has_no_lag(progress: Progress) -> None:
    assert progress.lag(is_behind=False) == 0


def test_message_dated_in_the_future_has_no_lag(progress: Progress) -> None:
    progress.current = timezone.now() + timedelta(minutes=1)
    assert progress.lag(is_behind=True) == 0


@pytest.mark.django_db
def test_withdrawn_permission_is_reported_without_the_message_of_the_broker() -> None:
    listener: Any = Listener("ctrl-1")
    listener.broker = Queue()
    listener.broker.count_waiting = refuse
    with capture_logs() as lines:
        listener.check_queue()
        listener.check_queue()
    listener.report()
    problem = "watcher-listener on ctrl-1: The broker refuses the login or the queue."
    assert Service.objects.get().lag_problem == problem
    assert [line["reason"] for line in lines] == ["access refused for user watcher"]


@pytest.mark.django_db
@pytest.mark.parametrize(("numbers", "is_behind"), [((1, 1), True), ((0, 1), False), ((1, 0), False)])
def test_listener_is_behind_if_messages_wait_at_two_checks(numbers: tuple[int, int], is_behind: bool) -> None:
    listener: Any = Listener("ctrl-1")
    listener.broker = Queue(*numbers)
    for _ in numbers:
        listener.check_queue()
    assert listener.is_behind is is_behind
