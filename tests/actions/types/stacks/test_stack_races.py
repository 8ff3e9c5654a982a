"""Concurrent operations on one stack never interleave, on PostgreSQL."""

import pytest

from actions.models import Action
from actions.types.stacks.replace_resource import settle_above
from cluster.models import Lock, Server, Stack
from cluster.models.stacks import Verb
from tests.actions.types.clusters.test_cluster_races import appliers, executor_of, run_winner_first
from tests.actions.types.stacks.builders import create, mark, part, proposed, reload, server, template
from tests.builders import make_flavor, make_node
from tests.interleaving import Rival, interrupt_before
from tests.plans.inline import run_waiting
from tests.races import Race, rounds
from watcher_site.models import Service

__all__ = ["appliers"]
pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
ROUNDS = rounds(5)


@pytest.fixture(autouse=True)
def capacity() -> None:
    make_node(vcpus=1000, memory=10**6, disk=10**5)
    make_flavor("small")
    make_flavor("large", vcpus=2)


def test_second_of_two_operations_on_a_stack_is_deferred_until_the_first_has_ended(appliers: list[Service]) -> None:
    with Race() as race:
        for number in range(ROUNDS):
            stack = create(f"shop-{number}", web=server())
            plans = [
                proposed("update_stack", stack, template=template(web=server("large"), other=server())),
                proposed("delete_stack", stack),
            ]
            won = race.run(*[executor_of(plan, applier) for plan, applier in zip(plans, appliers, strict=True)])
            assert sorted(won) == [False, True]
            assert Lock.objects.filter(stack=stack).count() == 1
            loser = plans[won.index(False)].actions.get(derived_from=None)
            assert f"Failed in locking stack {stack.uuid}" in str(loser.status_message)
            run_winner_first(plans, won)
            assert not Server.objects.present().exists()
            assert reload(stack).deleted_at


def test_one_of_two_concurrently_started_plans_of_a_stack_starts() -> None:
    with Race() as race:
        for number in range(ROUNDS):
            stack = create(f"shop-{number}", web=server())
            plans = [proposed("update_stack", stack, plan_only=True, template=template()) for _ in range(2)]
            assert sorted(race.run(*[reload(plan).launch for plan in plans])) == [False, True]
            run_waiting()


def test_update_and_replacement_of_a_resource_never_interleave(appliers: list[Service]) -> None:
    with Race() as race:
        for number in range(ROUNDS):
            stack = create(f"shop-{number}", web=server())
            mark(part(stack, "web"))
            plans = [
                proposed("update_stack", stack),
                proposed("replace_resource", part(stack, "web"), expected_status="CHECK_FAILED"),
            ]
            won = race.run(*[executor_of(plan, applier) for plan, applier in zip(plans, appliers, strict=True)])
            assert any(won)
            run_winner_first(plans, won)
            assert part(stack, "web").generation == 1
            assert Server.objects.filter(name=f"shop-{number}-web").count() == 2
            assert Server.objects.present().filter(name=f"shop-{number}-web").count() == 1
            assert set(Action.objects.filter(action_plan__in=plans).values_list("state", flat=True)) <= {
                *("SUCCEEDED", "SKIPPED")
            }


def test_two_concurrent_replacements_complete_the_failed_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = create(web=server(), other=server())
    stack.begin(Verb.UPDATE)
    stack.fail("once")
    stack.save_state()
    second = Rival(lambda: settle_above(part(stack, "other")))
    interrupt_before(monkeypatch, Stack, "save_state", second)
    settle_above(part(stack, "web"))
    second.result()
    assert reload(stack).status == "UPDATE_COMPLETE"
