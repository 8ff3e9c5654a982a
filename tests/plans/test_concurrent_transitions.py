"""Races of two operations that exclude each other; `make chaos` runs more rounds."""

import pytest

from tests.chaos.races import RACES, OperationRace, count
from tests.races import rounds
from watcher_site.models import Service

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
ROUNDS = rounds(200)


@pytest.mark.parametrize("race", RACES)
def test_one_of_two_concurrent_transitions_succeeds_and_is_recorded(race: type[OperationRace]) -> None:
    results = race(Service.register(Service.APPLIER, "here")).run(ROUNDS)
    # Both results of a race must occur often.
    for condition in race.balanced:
        assert ROUNDS // 10 < count(condition, results) < ROUNDS - ROUNDS // 10
