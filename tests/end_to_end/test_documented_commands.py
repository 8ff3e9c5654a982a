"""The commands of the documentation, run unchanged with the unmodified clients against the demonstration."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from pytest_django.live_server_helper import LiveServer

from actions.models.instance_actions import InstanceAction
from cluster.models import Server, Stack, StackResource
from plans.models import ActionPlan
from tests.conformance.suites import warm_client
from tests.plans.inline import run_waiting

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

ROOT = Path(__file__).parents[2]
ADDRESS = "http://127.0.0.1:8000"
PASSWORD = "correct-horse-battery"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
Run = Callable[..., str]


def commands_of(document: str, heading: str) -> str:
    """Return the commands of one section of a document, without the installation commands."""
    text = (ROOT / document).read_text()
    level = heading.split(" ")[0]
    begin = text.index(f"{heading}\n") + len(heading)
    end = re.compile(rf"^#{{1,{len(level)}}} ", re.MULTILINE).search(text, begin)
    blocks = BLOCK.findall(text[begin : end.start() if end else None])
    lines = [line for block in blocks for line in block.splitlines(keepends=True)]
    return "".join(line for line in lines if not line.startswith("pip install"))


@pytest.fixture
def plan(db: None) -> ActionPlan:
    """The plan of the demonstration."""
    User.objects.create_superuser("admin", password=PASSWORD)
    call_command("load_demonstration", stdout=StringIO())
    found: ActionPlan = ActionPlan.objects.get()
    return found


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the command ``openstack``, which runs in forks of a process that has imported the client."""
    variables = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    with warm_client(Path(sys.executable), tmp_path_factory.mktemp("client"), variables) as folder:
        yield folder


@pytest.fixture
def run(plan: ActionPlan, programs: Path, live_server: LiveServer) -> Run:
    """Run the commands of a section in a shell, and return what they print."""

    def run(document: str, heading: str, **names: str) -> str:
        script = commands_of(document, heading).replace(ADDRESS, live_server.url)
        script = script.replace("OS_PASSWORD=…", f"OS_PASSWORD={PASSWORD}")
        script = script.replace("curl -u admin ", f"curl -sS --fail-with-body -u admin:{PASSWORD} ")
        for name, value in names.items():
            script = script.replace(name, value)
        environment = {
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": os.environ.get("HOME", "/"),
            "OS_AUTH_TYPE": "http_basic",
            "OS_ENDPOINT": live_server.url,
            "OS_USERNAME": "admin",
            "OS_PASSWORD": PASSWORD,
        }
        done = subprocess.run(
            ["/bin/bash", "-euo", "pipefail", "-c", script],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


def test_an_action_is_skipped_with_openstack_optimize(run: Run, plan: ActionPlan) -> None:
    action = plan.actions.filter(action_type="migrate").first()
    assert action
    run("README.md", "### With `openstack optimize`", PLAN=str(plan.uuid), ACTION=str(action.uuid))
    action.refresh_from_db()
    assert (action.state, "Not before Sunday" in (action.status_message or "")) == ("SKIPPED", True)


def test_an_action_is_skipped_with_curl(run: Run, plan: ActionPlan) -> None:
    action = plan.actions.filter(action_type="migrate").first()
    assert action
    run("README.md", "### With curl", PLAN=str(plan.uuid), ACTION=str(action.uuid))
    action.refresh_from_db()
    assert (action.state, "Not before Sunday" in (action.status_message or "")) == ("SKIPPED", True)


def test_an_audit_is_created_with_openstack_optimize(run: Run) -> None:
    assert "empty compute-04" in run("docs/tutorial.md", "## Create a plan from an audit")


def test_a_marked_resource_is_replaced(run: Run) -> None:
    assert "replace_unhealthy" in run("docs/tutorial.md", "## Replace a broken server")


def test_a_cluster_is_scaled_in(run: Run) -> None:
    assert "action_plan" in run("docs/tutorial.md", "## Scale a cluster")


def test_a_resource_of_the_stack_is_marked_with_the_client_of_heat(run: Run) -> None:
    shown = run("docs/api.md", "## Heat clients")
    assert "build-runners" in shown
    assert StackResource.objects.get(name="ci-runner-2").status == "CHECK_COMPLETE"


def test_servers_and_their_events_are_shown_with_the_client_of_nova(run: Run, plan: ActionPlan) -> None:
    plan.launch()
    run_waiting()
    event = InstanceAction.objects.get(server_uuid=Server.objects.get(name="web-2").uuid)
    shown = run("docs/api.md", "### With `openstack server`", REQUEST_ID=event.request_id)
    assert "ci-runner-2" in shown
    assert "live-migration" in shown


def test_a_server_is_marked_with_curl(run: Run) -> None:
    server = Server.objects.get(name="web-2")
    shown = run("docs/api.md", "## Health marks", **{"$SERVER": str(server.uuid)})
    assert "its disk is slow" in shown


def test_a_stack_is_planned_and_updated_with_curl(run: Run) -> None:
    stack = Stack.objects.roots().get()
    ids = {"/shop/$STACK": f"/{stack.name}/{stack.uuid}"}
    shown = run("docs/stacks.md", "## Operations", **ids)
    assert shown.count("action_plan") == 2
