"""The database cost of one action: two commits and a constant number of statements, for a plan of any size."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection, connections

from actions.engine import execution
from actions.exclusions.rules import current_rules
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from tests.builders import make_plan
from tests.plans.inline import run_waiting
from watcher_site.models import Service

WRITES = ("INSERT", "UPDATE", "DELETE", "WITH")


@contextmanager
def counted() -> Iterator[list[str]]:
    statements: list[str] = []

    def count(execute, sql, params, many, context):
        statements.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(count):
        yield statements


@contextmanager
def counted_commits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Count the ends of transactions, and the writing statements that are a transaction of their own."""
    commits: list[str] = []
    wrapper = type(connections["default"])
    commit = wrapper._commit

    def counting(self):
        commits.append("COMMIT")
        return commit(self)

    def count(execute, sql, params, many, context):
        if sql.startswith(WRITES) and not connection.in_atomic_block:
            commits.append(sql)
        return execute(sql, params, many, context)

    monkeypatch.setattr(wrapper, "_commit", counting)
    with connection.execute_wrapper(count):
        yield commits


def begin(size: int = 1) -> tuple[ActionPlan, PlanLease]:
    plan = make_plan({str(number): [] for number in range(size)}, state="PENDING")
    applier = Service.register(Service.APPLIER, "here")
    plan.begin(applier)
    plan.save_state()
    lease = PlanLease.of(plan, applier)
    # The statement is composed once per process, in a transaction that executes none.
    lease.hold(has_begun=False)
    # Exclusions are read once per process, and again after a change, also by another test.
    current_rules()
    return plan, lease


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("switches", "commits"), [({}, 2), ({"fail_execute": True}, 2), ({"skip_pre_condition": True}, 1)]
)
def test_action_needs_at_most_two_commits(
    monkeypatch: pytest.MonkeyPatch, switches: dict[str, bool], commits: int
) -> None:
    plan, lease = begin()
    plan.actions.update(input_parameters={"message": "x", **switches})
    action = plan.actions.get()
    with counted_commits(monkeypatch) as counted:
        assert execution.execute(action, lease)
    assert len(counted) == commits


@pytest.mark.django_db
def test_action_needs_two_statements_on_postgresql_and_five_elsewhere() -> None:
    plan, lease = begin()
    action = plan.actions.get()
    with counted() as statements:
        execution.execute(action, lease)
    kinds = [sql.split()[0] for sql in statements if "SAVEPOINT" not in sql]
    assert kinds in (["WITH", "WITH"], ["UPDATE", "INSERT", "UPDATE", "UPDATE", "INSERT"])


@pytest.mark.django_db
def test_statement_count_of_a_plan_is_linear_in_its_actions() -> None:
    costs = []
    for size in (50, 100):
        make_plan({str(number): [str(number - 1)] if number else [] for number in range(size)}, state="PENDING")
        with counted() as statements:
            run_waiting()
        costs.append(len(statements))
    assert costs[1] <= 2 * costs[0]
