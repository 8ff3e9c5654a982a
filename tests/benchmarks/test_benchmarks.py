"""Benchmarks refuse a database server without durable commits, and invalid arguments."""

import pytest

from tests.benchmarks.database import NotDurable, require_durability, server_url
from tests.benchmarks.scale.__main__ import read_parts, read_share

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db]


def test_database_server_without_durable_commits_is_refused() -> None:
    with pytest.raises(NotDurable, match="synchronous_commit: off"):
        require_durability(f"{server_url()}?options=-c%20synchronous_commit%3Doff")


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "nan", "half"])
def test_invalid_share_of_rows_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a number from"):
        read_share(text)


def test_unknown_part_of_a_benchmark_is_refused() -> None:
    with pytest.raises(ValueError, match="Unknown part: rows"):
        read_parts(["load", "rows"])
