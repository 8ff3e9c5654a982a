"""The adaptive start delay of a race, with which both operations win equally often."""

import pytest

from tests.chaos.start_delays import AdaptiveStartDelay


def race(delay: AdaptiveStartDelay, second_slower_by: float, rounds: int) -> list[bool]:
    """Return for each round whether the first operation won."""
    won = []
    for _ in range(rounds):
        won.append(delay.seconds < second_slower_by)
        delay.adapt(won[-1])
    return won


@pytest.mark.parametrize("seconds", [0, 1e-6, 0.0003, 0.02, 1, -0.0003, -1])
def test_both_operations_win_about_equally_often_after_a_few_dozen_rounds(seconds: float) -> None:
    delay = AdaptiveStartDelay()
    assert len(set(race(delay, seconds, 40))) == 2
    assert 60 < sum(race(delay, seconds, 200)) < 140


def test_delay_follows_a_machine_that_becomes_slower() -> None:
    delay = AdaptiveStartDelay()
    race(delay, 0.001, 500)
    assert len(set(race(delay, 0.5, 60))) == 2


def test_delay_converges_to_the_difference_of_the_operations() -> None:
    delay = AdaptiveStartDelay()
    race(delay, 0.02, 100)
    assert abs(delay.seconds - 0.02) < 0.0001
