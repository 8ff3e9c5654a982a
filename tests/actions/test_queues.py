"""The Celery queue of an action, by its type or by the availability zone of its target."""

import pytest
from django.core.checks import run_checks
from pytest_django import Settings

from actions.models import Action
from actions.queues import queue_of
from tests.builders import make_node, make_plan, make_pool, make_server, make_volume

pytestmark = pytest.mark.django_db


def acting_on(target: object, kind: str = "stop") -> Action:
    return Action.objects.create(
        action_plan=make_plan(), action_type=kind, input_parameters={"resource_id": str(target)}
    )


@pytest.fixture(autouse=True)
def queues(settings: Settings) -> None:
    settings.CELERY_QUEUE = "others"
    settings.CELERY_QUEUES = {"migrate": "migrations", "zone:az1": "first"}


def test_queue_of_the_type_takes_precedence_over_the_zone() -> None:
    server = make_server(node=make_node(zone="az1"))
    assert queue_of(acting_on(server.uuid, "migrate")) == "migrations"


def test_target_in_a_zone_selects_the_queue_of_the_zone() -> None:
    node = make_node(zone="az1")
    volume = make_volume(pool=make_pool())
    type(volume.pool.storage_node).objects.update(zone="az1")
    targets = (make_server(node=node).uuid, node.uuid, node.hostname, volume.uuid)
    assert [queue_of(acting_on(target)) for target in targets] == ["first"] * 4


@pytest.mark.parametrize("target", ["7a7c9b4e-8d0d-4a58-8a1f-1f6f5f1d2a11", "nowhere", ""])
def test_unknown_target_selects_the_default_queue(target: str) -> None:
    assert queue_of(acting_on(target)) == "others"


def test_queue_takes_no_query_if_no_zone_has_a_queue(settings: Settings, django_assert_num_queries: object) -> None:
    settings.CELERY_QUEUES = {"migrate": "migrations"}
    action = acting_on("7a7c9b4e-8d0d-4a58-8a1f-1f6f5f1d2a11")
    with django_assert_num_queries(0):
        assert queue_of(action) == "others"


def test_queue_of_an_unknown_action_type_is_reported_by_the_checks(settings: Settings) -> None:
    settings.CELERY_QUEUES = {"migrait": "migrations", "zone:az1": "first"}
    assert [problem.msg for problem in run_checks() if problem.id == "actions.E002"] == [
        "WATCHER_CELERY_QUEUES: there is no action type migrait."
    ]
