"""The expected outcomes of ``make conformance``, and its identity service."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.conformance.identity import Account, serving
from tests.conformance.suites import Result, Suite

ACCOUNT = Account("conformance", "a password", "a token")
SITE = "http://127.0.0.1:9"


def result(**outcomes: str) -> Result:
    suite = Suite("s", "S", "s", 2, failures={"Tests.wrong": "a reason"}, skipped={"Tests.late": "another"})
    return Result(suite, {f"s.Tests.{name}[id-1]": outcome for name, outcome in outcomes.items()})


def test_expected_outcomes_are_no_problem() -> None:
    expected = result(right="success", wrong="failure", late="skip")
    assert (expected.problems(), expected.line()) == ([], "S: 1/2 passed")
    assert expected.exceptions() == [
        "s.Tests.wrong[id-1]: failure, as expected: a reason",
        "s.Tests.late[id-1]: skip, as expected: another",
    ]


@pytest.mark.parametrize(
    ("outcomes", "problem"),
    [
        ({"right": "failure", "wrong": "failure"}, "s.Tests.right[id-1]: failure, expected success"),
        ({"right": "skip", "wrong": "failure"}, "s.Tests.right[id-1]: skip, expected success"),
        ({"right": "success", "wrong": "success"}, "s.Tests.wrong[id-1]: success, expected failure"),
        ({"right": "success"}, "1 tests ran, expected 2"),
    ],
)
def test_unexpected_outcome_is_a_problem(outcomes: dict[str, str], problem: str) -> None:
    assert result(**outcomes).problems() == [problem]


@pytest.fixture
def identity() -> Iterator[str]:
    with serving(ACCOUNT, SITE) as url:
        yield url


def log_in(url: str, password: str) -> requests.Response:
    user = {"name": ACCOUNT.name, "password": password, "domain": {"name": "Default"}}
    body: dict[str, Any] = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}}}
    return requests.post(f"{url}/auth/tokens", json=body, timeout=60)


def test_identity_service_returns_the_token_and_a_catalog_with_the_site(identity: str) -> None:
    answer = log_in(identity, ACCOUNT.password)
    catalog = {entry["type"]: entry["endpoints"][0]["url"] for entry in answer.json()["token"]["catalog"]}
    assert (answer.status_code, answer.headers["X-Subject-Token"]) == (201, ACCOUNT.token)
    assert catalog == {"identity": identity, "infra-optim": SITE}


def test_identity_service_refuses_a_wrong_password(identity: str) -> None:
    assert log_in(identity, "another").status_code == 401
