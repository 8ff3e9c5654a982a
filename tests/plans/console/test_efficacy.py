"""Efficacy on the page of a plan: values before and after the plan, if the indicators have both."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from plans.console.efficacy import efficacy_of
from plans.models import ActionPlan, EfficacyIndicator
from tests.builders import make_plan

pytestmark = pytest.mark.django_db
RATIO = {"name": "released_nodes_ratio", "description": "The share that is released.", "unit": "%", "value": 40.0}


def make_plan_with_indicators(overall: list[dict[str, object]] | None = None, **values: float) -> ActionPlan:
    plan = make_plan({"a": []}, global_efficacy=overall or [])
    EfficacyIndicator.objects.bulk_create(
        EfficacyIndicator(action_plan=plan, name=name, value=value, description=f"About {name}.", unit="pieces")
        for name, value in values.items()
    )
    return plan


def compared(**values: float) -> list[tuple[str, float, float]]:
    return [
        (label, before, after) for label, before, after, _ in efficacy_of(make_plan_with_indicators(**values)).compared
    ]


def test_active_nodes_after_the_plan_exclude_released_nodes() -> None:
    found = compared(compute_nodes_count=5, released_compute_nodes_count=2)
    assert found == [("Active compute nodes", 5, 3)]


def test_standard_deviation_of_loads_is_shown_before_and_after() -> None:
    found = compared(standard_deviation_before_audit=0.3, standard_deviation_after_audit=0.1)
    assert found == [("Standard deviation of the node loads", 0.3, 0.1)]


def test_planned_migrations_are_subtracted_from_the_volumes_to_move() -> None:
    found = compared(volume_migrate_count=3, planned_volume_migrate_count=2)
    assert found == [("Free volumes to move", 3, 1)]


def test_indicators_with_value_zero_are_omitted() -> None:
    assert compared(volume_update_count=0, planned_volume_update_count=0) == []


def test_indicator_without_a_counterpart_is_shown_alone() -> None:
    efficacy = efficacy_of(make_plan_with_indicators(standard_deviation_after_audit=0.1, instance_migrations_count=13))
    assert [one.name for one in efficacy.indicators] == ["standard_deviation_after_audit", "instance_migrations_count"]
    assert efficacy.compared == []


def test_plan_page_shows_indicators_with_units_and_descriptions(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    plan = make_plan_with_indicators(
        [RATIO], compute_nodes_count=5, released_compute_nodes_count=2, instance_migrations_count=13
    )
    text = " ".join(client.get(reverse("plans:detail", args=[plan.uuid])).content.decode().split())
    for words in ("Active compute nodes", "<strong>3</strong>", "Released nodes ratio", "<strong>40 %</strong>"):
        assert words in text
    assert "13 pieces" in text
    assert "About instance_migrations_count." in text


def test_plan_page_without_indicators_has_no_efficacy_section(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    text = client.get(reverse("plans:detail", args=[make_plan({"a": []}).uuid])).content.decode()
    assert "Efficacy" not in text
