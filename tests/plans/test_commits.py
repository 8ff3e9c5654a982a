"""What one action costs the database: two commits, and the same few statements whatever the size of its plan."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection, connections

from actions import execution
from plans.leases import PlanLease
from plans.models import ActionPlan
from tests.builders import make_plan
from tests.plans.inline import run_waiting
from watcher_site.models import Service

WRITES = ("INSERT", "UPDATE", "DELETE")


@contextmanager
def counted() -> Iterator[list[str]]:
    statements: list[str] = []

    def count(execute, sql, params, many, context):
        statements.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(count):
        yield statements


@contextmanager
def counted_commits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    commits: list[int] = []
    commit = type(connections["default"])._commit

    def counting(wrapper):
        commits.append(1)
        return commit(wrapper)

    monkeypatch.setattr(type(connections["default"]), "_commit", counting)
    yield commits


def begin(size: int = 1) -> tuple[ActionPlan, PlanLease]:
    plan = make_plan({str(number): [] for number in range(size)}, state="PENDING")
    applier = Service.register(Service.APPLIER, "here")
    plan.begin(applier)
    plan.save_state()
    return plan, PlanLease(plan, applier)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("switches", "commits"), [({}, 2), ({"fail_execute": True}, 2), ({"skip_pre_condition": True}, 1)]
)
def test_an_action_takes_at_most_two_commits(
    monkeypatch: pytest.MonkeyPatch, switches: dict[str, bool], commits: int
) -> None:
    plan, lease = begin()
    plan.actions.update(input_parameters={"message": "x", **switches})
    action = plan.actions.get()
    with counted_commits(monkeypatch) as counted:
        assert execution.execute(action, lease)
    assert len(counted) == commits


@pytest.mark.django_db(transaction=True)
def test_an_action_writes_inside_of_its_commits_only() -> None:
    plan, lease = begin()
    action = plan.actions.get()
    outside: list[str] = []

    def look(execute, sql, params, many, context):
        if sql.startswith(WRITES) and not connection.in_atomic_block:
            outside.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(look):
        execution.execute(action, lease)
    assert outside == []


@pytest.mark.django_db
def test_an_action_takes_six_statements() -> None:
    plan, lease = begin()
    action = plan.actions.get()
    with counted() as statements:
        execution.execute(action, lease)
    assert [sql.split()[0] for sql in statements if "SAVEPOINT" not in sql] == [
        "SELECT",
        "UPDATE",
        "INSERT",
        "UPDATE",
        "UPDATE",
        "INSERT",
    ]


@pytest.mark.django_db
def test_the_statements_of_a_plan_grow_with_its_actions_and_no_faster() -> None:
    costs = []
    for size in (50, 100):
        make_plan({str(number): [str(number - 1)] if number else [] for number in range(size)}, state="PENDING")
        with counted() as statements:
            run_waiting()
        costs.append(len(statements))
    assert costs[1] <= 2 * costs[0]
