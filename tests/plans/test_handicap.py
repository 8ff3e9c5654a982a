"""The handicap of a contest finds where both of two are equally fast, however different they are."""

import pytest

from tests.chaos.handicap import Handicap


def race(handicap: Handicap, second_slower_by: float, rounds: int) -> list[bool]:
    """Say of each round whether the first won."""
    won = []
    for _ in range(rounds):
        won.append(handicap.seconds < second_slower_by)
        handicap.note(won[-1])
    return won


@pytest.mark.parametrize("seconds", [0, 1e-6, 0.0003, 0.02, 1, -0.0003, -1])
def test_both_win_within_a_few_dozen_rounds_and_about_equally_often_from_then_on(seconds: float) -> None:
    handicap = Handicap()
    assert len(set(race(handicap, seconds, 40))) == 2
    assert 60 < sum(race(handicap, seconds, 200)) < 140


def test_it_follows_a_machine_that_becomes_slower() -> None:
    handicap = Handicap()
    race(handicap, 0.001, 500)
    assert len(set(race(handicap, 0.5, 60))) == 2


def test_the_rounds_become_close() -> None:
    handicap = Handicap()
    race(handicap, 0.02, 100)
    assert abs(handicap.seconds - 0.02) < 0.0001
