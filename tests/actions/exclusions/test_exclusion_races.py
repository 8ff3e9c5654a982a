"""Races of the saving of rules with starting actions and with the saving of other rules, on PostgreSQL."""

from functools import partial

import pytest
from django.utils import timezone

from actions.engine.execution import execute
from actions.exclusions.rules import current_rules
from actions.models.exclusions import Exclusion
from plans.planning.proposals import propose
from tests.actions.exclusions.builders import make_exclusion
from tests.actions.exclusions.test_exclusions import nop, states
from tests.plans.applier.test_commits import begin
from tests.plans.inline import run_waiting
from tests.races import Race, rounds

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
ROUNDS = rounds(15)


def test_rule_skips_actions_that_start_after_it_was_saved() -> None:
    with Race() as race:
        for number in range(ROUNDS):
            plan, lease = begin()
            action, rule = plan.actions.get(), partial(make_exclusion, f"rule {number}", action_types=["nop"])
            assert race.run(partial(execute, action, lease), rule) == [True, True]
            saved, action = timezone.now(), plan.actions.get()
            assert action.state in {"SKIPPED", "SUCCEEDED"}
            assert action.state == "SKIPPED" or action.start_time <= saved
            plan, lease = begin()
            assert execute(plan.actions.get(), lease)
            assert states(plan) == {"0": "SKIPPED"}
            Exclusion.objects.all().delete()
            make_exclusion(f"another {number}", action_types=["migrate"])


def test_both_of_two_concurrently_saved_rules_are_read() -> None:
    with Race() as race:
        for number in range(ROUNDS):
            rules = [partial(make_exclusion, f"{kind} {number}", action_types=[kind]) for kind in ("nop", "migrate")]
            assert race.run(*rules) == [True, True]
            assert {rule.name for rule in current_rules().rules} >= {f"nop {number}", f"migrate {number}"}
    plan = propose([nop("a")])
    plan.launch()
    run_waiting()
    assert states(plan) == {"a": "SKIPPED"}
