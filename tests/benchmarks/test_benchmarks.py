"""Benchmarks refuse a database server without durable commits, invalid arguments, and responses other than pages."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tests.benchmarks import rows
from tests.benchmarks.database import NotDurable, require_durability, server_url
from tests.benchmarks.scale.__main__ import read_parts, read_share
from tests.benchmarks.web import console_rows
from tests.benchmarks.web.console import REDIRECTS, Page, cost_of, pages

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


@pytest.fixture
def benchmark(client: Client) -> Client:
    """The browser of the user of the benchmark."""
    rows.person()
    client.force_login(User.objects.get(username=rows.NAME))
    return client


@pytest.mark.parametrize("name", ["projects:servers", "account:scope", "plans:cancel"])
def test_response_other_than_a_page_fails_the_benchmark(benchmark: Client, name: str) -> None:
    path = "/console/plans/none/cancel/" if name == "plans:cancel" else reverse(name)
    with pytest.raises(RuntimeError, match=f"GET {path}: 404"):
        cost_of(benchmark, Page(name, path))


def test_unknown_redirect_fails_the_benchmark(benchmark: Client) -> None:
    with pytest.raises(RuntimeError, match="302"):
        cost_of(benchmark, Page("plans:list", reverse("pruning:skip")))
    assert cost_of(benchmark, Page("pruning:skip", reverse("pruning:skip"))) is None


@pytest.mark.slow
def test_pages_of_projects_and_audits_respond_to_the_benchmark(
    benchmark: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are fewer than those of the benchmark, but of the same kinds. All pages would take a minute."""
    for name, value in {"PLANS": 20, "ACTIONS": 400, "SIZES": (5, 10, 15, 20, 30), "ENDED": 10}.items():
        monkeypatch.setattr(console_rows, name, value)
    monkeypatch.setattr(rows, "SIZES", [1])
    # The first audit is one that cannot be deleted.
    rows.fill()
    measured = pages(console_rows.fill())
    found = {page.name: page.path for page in measured if page.name.startswith(("projects:", "audits:"))}
    expected = {"projects:server", "projects:stack", "projects:cluster", "projects:resource-mark", "audits:delete"}
    assert expected <= found.keys()
    assert {name for name, path in found.items() if benchmark.get(path).status_code != 200} <= REDIRECTS
