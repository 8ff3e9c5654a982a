"""Rounds in which two operations that exclude each other begin at about the same moment; `make chaos` runs more."""

import pytest

from tests.chaos.contests import CONTESTS, Contest, how_often
from watcher_site.models import Service

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
ROUNDS = 1500 // len(CONTESTS)


@pytest.mark.parametrize("contest", CONTESTS)
def test_of_two_verbs_one_wins_and_the_record_agrees_with_what_happened(contest: type[Contest]) -> None:
    outcomes = contest(Service.register(Service.APPLIER, "here")).run(ROUNDS)
    # A race that nearly always ends the same way is none.
    for decision in contest.decisions:
        assert ROUNDS // 10 < how_often(decision, outcomes) < ROUNDS - ROUNDS // 10
