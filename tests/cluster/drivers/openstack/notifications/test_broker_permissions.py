"""A broker user without a permission that the listener requires."""

import glob
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.broker import OwnBroker
from tests.cluster.drivers.openstack.notifications.listener import CloudTopics
from tests.processes import start_command

pytestmark = [
    pytest.mark.slow,
    pytest.mark.postgresql,
    pytest.mark.own_rabbitmq,
    pytest.mark.django_db(transaction=True),
]
CONTROL = "/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmqctl"
ALL, NONE = ".*", "^$"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnBroker]:
    with OwnBroker(tmp_path_factory.mktemp("broker")) as broker:
        control(broker, "add_user", "watcher", "secret")
        yield broker


def control(broker: OwnBroker, *arguments: str) -> None:
    command = [*glob.glob(CONTROL)[:1], "--node", broker.environment["RABBITMQ_NODENAME"], *arguments]
    subprocess.run(command, env=broker.environment, check=True, capture_output=True, cwd=Path("/"))


@pytest.mark.parametrize(
    ("configure", "write", "read"), [(NONE, ALL, ALL), (ALL, NONE, ALL), (ALL, ALL, NONE), (NONE, NONE, NONE)]
)
def test_missing_permission_ends_the_listener_with_status_2(
    broker: OwnBroker, configure: str, write: str, read: str
) -> None:
    control(broker, "set_permissions", "watcher", configure, write, read)
    url = f"rabbit://watcher:secret@127.0.0.1:{broker.port}/"
    environment = {**CloudTopics().environment(url), "WATCHER_LOG_LEVEL": "WARNING"}
    process = start_command("listen_notifications", **environment)
    _, errors = process.communicate(60)
    assert process.returncode == 2
    assert errors.startswith("CommandError: WATCHER_CLOUD_NOTIFICATION_URL: the broker refuses it: ACCESS_REFUSED")
    assert (errors.count("\n"), "secret" in errors) == (1, False)
