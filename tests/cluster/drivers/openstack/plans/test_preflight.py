"""The preflight of a plan for an OpenStack cloud, based on the synchronized tables without requests to the cloud."""

import pytest

from actions.models import Action
from cluster.models import Synchronization
from plans.preflight import preflight
from tests.builders import make_plan
from tests.cluster.emulator.server import Emulator

pytestmark = pytest.mark.django_db


def test_preflight_uses_the_synchronized_tables_only_and_reports_their_time(emulator: Emulator, server: str) -> None:
    plan = make_plan()
    steps = [
        ("migrate", {"migration_type": "live", "source_node": "compute1", "destination_node": "compute2"}),
        ("migrate", {"migration_type": "live", "source_node": "compute1"}),
        ("stop", {}),
    ]
    for kind, parameters in steps:
        Action.objects.create(
            action_plan=plan, action_type=kind, input_parameters={"resource_id": server, **parameters}
        )
    emulator.stop()
    found = preflight(plan)
    assert [prospect.outcome for prospect in found.prospects] == ["SUCCEEDED", "SKIPPED", "SUCCEEDED"]
    assert found.prospects[1].foresight.message == (
        f"Action was skipped automatically: Instance {server} is not running on source node compute1"
        " (currently on compute2)"
    )
    assert (found.is_mirrored, found.read_at) == (True, Synchronization.current().succeeded_at)
