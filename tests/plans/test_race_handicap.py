"""The handicap of a race, which adapts until both contestants win equally often."""

import pytest

from tests.chaos.handicap import Handicap


def race(handicap: Handicap, second_slower_by: float, rounds: int) -> list[bool]:
    """Return for each round whether the first contestant won."""
    won = []
    for _ in range(rounds):
        won.append(handicap.seconds < second_slower_by)
        handicap.note(won[-1])
    return won


@pytest.mark.parametrize("seconds", [0, 1e-6, 0.0003, 0.02, 1, -0.0003, -1])
def test_both_contestants_win_about_equally_often_after_a_few_dozen_rounds(seconds: float) -> None:
    handicap = Handicap()
    assert len(set(race(handicap, seconds, 40))) == 2
    assert 60 < sum(race(handicap, seconds, 200)) < 140


def test_handicap_follows_a_machine_that_becomes_slower() -> None:
    handicap = Handicap()
    race(handicap, 0.001, 500)
    assert len(set(race(handicap, 0.5, 60))) == 2


def test_handicap_converges_to_the_difference_of_the_contestants() -> None:
    handicap = Handicap()
    race(handicap, 0.02, 100)
    assert abs(handicap.seconds - 0.02) < 0.0001
