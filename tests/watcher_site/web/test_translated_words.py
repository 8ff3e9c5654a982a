"""States, types and dates within texts of pages are in the language of the reader."""

import json
from datetime import date
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils.translation import override

from audits.console.trends import Chart
from cluster.models import StackResource
from tests.builders import make_node, make_plan, make_resource, make_stack, make_strategy
from watcher_site.models import Service

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def show(reader: Client, page: str, *arguments: object) -> str:
    """Return the text of a page in German, with single blanks."""
    answer = reader.get(reverse(page, args=arguments), headers={"accept-language": "de"})
    return " ".join(unescape(answer.content.decode()).split())


def test_overview_counts_plans_by_translated_states(reader: Client) -> None:
    make_plan({"a": []}, state="RECOMMENDED")
    assert "1 vorgeschlagen" in show(reader, "home")


def test_resource_of_a_stack_has_a_translated_type_and_problem(reader: Client) -> None:
    stack = make_stack()
    make_resource(stack, type=StackResource.Type.SCALING_GROUP)
    shown = show(reader, "stacks:detail", stack.uuid)
    assert "Skalierungsgruppe" in shown
    assert "noch nicht erstellt" in shown


def test_days_of_charts_are_translated() -> None:
    chart = Chart("plans", "bar", "", "", "", [date(2026, 3, 1)], [])
    with override("de"):
        assert json.loads(chart.data)["days"] == ["1. März"]


def test_states_of_a_node_in_the_scope_of_an_audit_are_translated(reader: Client) -> None:
    make_strategy()
    make_node("compute-9", zone="hall", status="disabled")
    assert "compute-9 in hall, deaktiviert" in show(reader, "audits:create")


def test_problem_of_a_listener_is_translated(reader: Client) -> None:
    service = Service.register(Service.LISTENER, "control-1")
    service.report(90.0, 0, 0, None)
    assert "watcher-listener auf control-1 liegt 90 Sekunden hinter der Cloud zurück." in show(reader, "home")
