"""Plans during which an applier is killed, a server is deleted, a token is revoked, or Nova is unavailable."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from actions.models import Action
from cluster.drivers.base import cloud, load_driver
from cluster.models import Server
from cluster.operations.synchronization import synchronize
from plans.models import ActionPlan
from tests.end_to_end.processes.test_applier_processes import kill, state
from tests.openstack.configuration import AUTH_URL, URLS
from tests.openstack.conftest import Background, Nova
from tests.openstack.control_plane import INTERVAL, PATIENCE, ControlPlane
from tests.openstack.plans.conftest import migration, plan_steps
from tests.plans.inline import run_waiting
from tests.processes import Process, start_command
from tests.waiting import wait_for

pytestmark = pytest.mark.openstack
Start = Callable[[], Process]


@pytest.fixture
def start(control_plane: ControlPlane) -> Iterator[Start]:
    """Start appliers, and kill them after the test."""
    environment = {
        "WATCHER_POLL_INTERVAL": "0.1",
        "WATCHER_CLOUD": "cluster.drivers.openstack.OpenStackCloud",
        "WATCHER_OPENSTACK_POLL_INTERVAL": "0.5",
        "WATCHER_OPENSTACK_TIMEOUT": str(PATIENCE),
        "OS_CLOUD": "service",
    }
    processes: list[Process] = []

    def start_applier() -> Process:
        processes.append(start_command("run_applier", **environment))
        return processes[-1]

    yield start_applier
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("kind", "task", "end"), [("live", "migrating", "completed"), ("cold", "resize_", "confirmed")]
)
@pytest.mark.django_db(transaction=True)
def test_migration_of_a_killed_applier_is_completed_without_another_request(
    nova: Nova, held: Path, start: Start, kind: str, task: str, end: str
) -> None:
    server = nova.boot("web", "cmp1")
    synchronize()
    plan = plan_steps(migration(server, kind))
    killed = start()
    wait_for(lambda: str(nova.show(server).task_state).startswith(task), PATIENCE)
    kill(killed)
    start()
    wait_for(lambda: Action.objects.get().losses == 1, PATIENCE, INTERVAL)
    held.unlink()
    wait_for(lambda: state(plan) == "SUCCEEDED", PATIENCE, INTERVAL)
    assert (nova.show(server).compute_host, nova.show(server).status) == ("cmp2", "ACTIVE")
    assert [found.status for found in nova.migrations(server)] == [end]


@pytest.mark.django_db(transaction=True)
def test_cancellation_of_a_plan_aborts_the_live_migration(nova: Nova, held: Path, start: Start) -> None:
    server = nova.boot("web", "cmp1")
    synchronize()
    plan = plan_steps(migration(server))
    start()
    wait_for(lambda: [found.status for found in nova.migrations(server)] == ["running"], PATIENCE)
    ActionPlan.objects.get(pk=plan.pk).abandon("alice")
    wait_for(lambda: state(plan) == "CANCELLED", PATIENCE, INTERVAL)
    assert (nova.show(server).compute_host, nova.show(server).status) == ("cmp1", "ACTIVE")
    assert [found.status for found in nova.migrations(server)] == ["cancelled"]


def test_action_on_a_deleted_server_is_skipped_and_the_plan_continues(nova: Nova) -> None:
    gone, present = nova.boot("gone", "cmp1"), nova.boot("present", "cmp1")
    synchronize()
    plan = plan_steps(migration(gone), migration(present))
    nova.compute.delete_server(gone)
    wait_for(lambda: gone not in {server.id for server in nova.servers()}, PATIENCE, INTERVAL)
    run_waiting()
    assert plan.actions.count_states() == {"SKIPPED": 1, "SUCCEEDED": 1}
    assert Action.objects.get(state="SKIPPED").status_message.endswith(f"Instance {gone} not found")
    assert not Server.objects.present().filter(uuid=gone).exists()
    assert nova.show(present).compute_host == "cmp2"


def test_migration_completes_after_an_outage_of_nova_api(
    nova: Nova, control_plane: ControlPlane, held: Path, background: Background
) -> None:
    server = nova.boot("web", "cmp1")
    synchronize()
    plan = plan_steps(migration(server))
    unanswered = 0

    def stop_nova() -> None:
        """Stop the API when Nova has accepted the migration, until the site has missed it several times."""
        wait_for(lambda: [found.status for found in nova.migrations(server)] == ["running"], PATIENCE)
        control_plane.kill("nova-api")
        wait_for(lambda: unanswered >= 5, PATIENCE)
        control_plane.start(["nova-api"])
        held.unlink()

    send = requests.Session.send

    def count(self: requests.Session, request: requests.PreparedRequest, **options: object) -> requests.Response:
        nonlocal unanswered
        try:
            return send(self, request, **options)
        except requests.ConnectionError:
            unanswered += 1
            raise

    background(stop_nova)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(requests.Session, "send", count)
        run_waiting()
    assert ActionPlan.objects.get(pk=plan.pk).state == "SUCCEEDED"
    assert unanswered >= 5
    assert (nova.show(server).compute_host, len(nova.migrations(server))) == ("cmp2", 1)


def test_revoked_token_is_replaced_after_a_401_of_nova(nova: Nova, control_plane: ControlPlane) -> None:
    server = nova.boot("web", "cmp1")
    session = load_driver().access.connect().session
    token = session.get_token()
    nova.service.session.delete(f"{AUTH_URL}/auth/tokens", headers={"X-Subject-Token": token})
    # Its process remembers for minutes that the token was valid.
    control_plane.stop("nova-api")
    control_plane.start(["nova-api"])
    refused = requests.get(f"{URLS['nova-api']}/v2.1/servers", headers={"X-Auth-Token": token}, timeout=60)
    assert refused.status_code == 401
    cloud().live_migrate(server, "cmp2")
    assert session.get_token() != token
    assert nova.show(server).compute_host == "cmp2"
