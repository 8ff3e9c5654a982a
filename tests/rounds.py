"""The number of rounds of tests of races."""

import os

FACTOR = int(os.environ.get("WATCHER_TEST_ROUNDS", "1"))


def rounds(number: int) -> int:
    """Return the number of rounds, multiplied by the variable WATCHER_TEST_ROUNDS."""
    return number * FACTOR
