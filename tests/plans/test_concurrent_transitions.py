"""Races of two operations that exclude each other; `make chaos` runs more rounds."""

import pytest

from tests.chaos.contests import CONTESTS, Contest, how_often
from tests.rounds import rounds
from watcher_site.models import Service

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
ROUNDS = rounds(200)


@pytest.mark.parametrize("contest", CONTESTS)
def test_one_of_two_concurrent_transitions_succeeds_and_is_recorded(contest: type[Contest]) -> None:
    outcomes = contest(Service.register(Service.APPLIER, "here")).run(ROUNDS)
    # Both outcomes of a race must occur often.
    for decision in contest.decisions:
        assert ROUNDS // 10 < how_often(decision, outcomes) < ROUNDS - ROUNDS // 10
