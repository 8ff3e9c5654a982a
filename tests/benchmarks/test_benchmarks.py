"""Benchmarks measure commits that outlive the machine, or nothing."""

import pytest

from tests.benchmarks.database import NotDurable, require_durability, server_url

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db]


def test_a_server_that_may_lose_commits_is_not_measured() -> None:
    with pytest.raises(NotDurable, match="synchronous_commit: off"):
        require_durability(f"{server_url()}?options=-c%20synchronous_commit%3Doff")
