"""The age of the oldest message that a listener has not written yet."""

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
    """Stands for the broker: the numbers of waiting messages that it gives, one after another."""

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


def test_a_message_that_is_being_handled_has_the_lag_of_its_own_age(progress: Progress) -> None:
    progress.current = ago(5)
    assert 5 <= progress.lag(is_behind=True) < 50


def test_while_messages_wait_the_lag_is_the_age_of_the_newest_that_was_handled(progress: Progress) -> None:
    assert 100 <= progress.lag(is_behind=True) < 150


def test_an_empty_queue_has_no_lag_however_old_the_last_message_is(progress: Progress) -> None:
    assert progress.lag(is_behind=False) == 0


def test_a_clock_of_the_cloud_that_is_ahead_makes_no_lag(progress: Progress) -> None:
    progress.current = timezone.now() + timedelta(minutes=1)
    assert progress.lag(is_behind=True) == 0


@pytest.mark.django_db
def test_rights_that_are_withdrawn_from_a_running_listener_are_named_without_the_words_of_the_broker() -> None:
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
def test_messages_that_wait_at_two_looks_make_a_listener_late(numbers: tuple[int, int], is_behind: bool) -> None:
    listener: Any = Listener("ctrl-1")
    listener.broker = Queue(*numbers)
    for _ in numbers:
        listener.check_queue()
    assert listener.is_behind is is_behind
