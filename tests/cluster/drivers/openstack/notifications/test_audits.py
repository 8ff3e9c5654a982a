"""Audits read the changes of notifications without another synchronization."""

from datetime import timedelta

import pytest
from pytest_django import Settings

from audits.engine.run import load_cluster
from audits.operations.creation import create_audit
from audits.strategies.base import COMPUTE
from cluster.models import Synchronization
from cluster.operations.synchronization import synchronize
from tests.builders import make_strategy
from tests.cluster.drivers.openstack.notifications.samples import handle, instance
from tests.cluster.emulator.server import Emulator

pytestmark = pytest.mark.django_db


def test_audit_after_a_notification_sees_the_server_on_its_new_node(emulator: Emulator, settings: Settings) -> None:
    settings.SYNC_MAX_AGE = timedelta(hours=1)
    emulator.nova.add_server("web", "compute1")
    synchronize()
    strategy = make_strategy()
    audit = create_audit(audit_type="ONESHOT", goal=strategy.goal.name, strategy=strategy.name)
    read = Synchronization.current().succeeded_at

    def places() -> dict[str, list[str]]:
        nodes = load_cluster(audit, [COMPUTE]).nodes.values()
        return {node.hostname: [server.name for server in node.servers] for node in nodes}

    assert places() == {"compute1": ["web"], "compute2": []}
    handle("instance.live_migration_post_dest.end", instance(host="compute2"))
    assert places() == {"compute1": [], "compute2": ["web"]}
    assert Synchronization.current().succeeded_at == read
