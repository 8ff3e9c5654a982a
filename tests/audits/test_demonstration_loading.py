"""Loads of the demonstration into a cloud that does not hold it."""

import pytest
from django.core.management import call_command
from pytest_django import Settings

from audits import demonstration
from cluster.models import ComputeNode, Server
from plans.models import ActionPlan
from tests.audits.test_demonstration import load
from tests.builders import make_node

pytestmark = pytest.mark.django_db


def test_load_ignores_a_cloud_with_deleted_nodes() -> None:
    make_node()
    ComputeNode.objects.soft_delete()
    load()
    assert not Server.objects.exists()


def test_failed_load_is_rolled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demonstration, "MAINTAINED", "compute-99")
    with pytest.raises(ActionPlan.DoesNotExist):
        load()
    assert not ComputeNode.objects.exists()


def test_load_again_fills_an_empty_cloud() -> None:
    load("--again")
    assert ActionPlan.objects.get().state == "RECOMMENDED"


def test_no_samples_are_created_for_another_cloud(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    settings.DEMO = True
    make_node("compute-01")
    call_command("make_metrics")
    assert capsys.readouterr().out == "0 samples\n"
