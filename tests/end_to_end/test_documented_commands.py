"""The commands of the documentation, run unchanged with the unmodified clients against the demonstration."""

import json
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
from knox.models import AuthToken
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from actions.models.instance_actions import InstanceAction
from audits.models import Audit
from audits.plugins import synchronize
from cluster.models import Server, Stack, StackResource
from plans.models import ActionPlan
from tests.api import Caller
from tests.command_runs import Run as Command
from tests.command_runs import run as in_process
from tests.conformance.suites import warm_client
from tests.documentation.blocks import read_text
from tests.documentation.test_documented_commands import SOME_UUID, management_commands, shell_commands
from tests.plans.inline import run_waiting

pytestmark = [pytest.mark.any_database, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

ADDRESS = "http://127.0.0.1:8000"
PASSWORD = "correct-horse-battery"
Run = Callable[..., str]

__all__ = ["in_process"]


def script_of(document: str, heading: str, number: int | None = None) -> str:
    """Return the commands of one section of a document, or of one block of it, without the installation commands."""
    lines = read_text(document, heading, number=number).splitlines(keepends=True)
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
    """Run the commands of a section in a shell, and return their output."""

    def run(document: str, heading: str, number: int | None = None, **names: str) -> str:
        script = script_of(document, heading, number).replace(ADDRESS, live_server.url)
        script = script.replace("OS_PASSWORD=…", f"OS_PASSWORD={PASSWORD}")
        script = re.sub(r"curl -u (\w+) ", rf"curl -sS --fail-with-body -u \1:{PASSWORD} ", script)
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


def test_action_is_skipped_with_openstack_optimize(run: Run, plan: ActionPlan) -> None:
    action = plan.actions.filter(action_type="migrate").first()
    assert action
    run("README.md", "### With `openstack optimize`", PLAN=str(plan.uuid), ACTION=str(action.uuid))
    action.refresh_from_db()
    assert (action.state, "Not before Sunday" in (action.status_message or "")) == ("SKIPPED", True)


def test_action_is_skipped_with_curl(run: Run, plan: ActionPlan) -> None:
    action = plan.actions.filter(action_type="migrate").first()
    assert action
    run("README.md", "### With curl", PLAN=str(plan.uuid), ACTION=str(action.uuid))
    action.refresh_from_db()
    assert (action.state, "Not before Sunday" in (action.status_message or "")) == ("SKIPPED", True)


def test_audit_is_created_with_openstack_optimize(run: Run) -> None:
    assert "empty compute-04" in run("docs/tutorial.md", "## Create a plan from an audit")


def test_marked_resource_is_replaced_as_in_the_tutorial(run: Run) -> None:
    assert "replace_unhealthy" in run("docs/tutorial.md", "## Replace a broken server")


def test_cluster_is_scaled_in_as_in_the_tutorial(run: Run) -> None:
    assert "action_plan" in run("docs/tutorial.md", "## Scale a cluster")


def test_resource_of_a_stack_is_marked_with_the_heat_client(run: Run) -> None:
    shown = run("docs/api.md", "## Heat clients")
    assert "build-runners" in shown
    assert StackResource.objects.get(name="ci-runner-2").status == "CHECK_COMPLETE"


def test_servers_and_their_events_are_shown_with_the_nova_client(run: Run, plan: ActionPlan) -> None:
    plan.launch()
    run_waiting()
    server = Server.objects.get(name="web-2")
    event = InstanceAction.objects.get(server_uuid=server.uuid)
    names = {"$SERVER": str(server.uuid), "REQUEST_ID": event.request_id}
    shown = run("docs/api.md", "## Instance actions and events", **names)
    assert "ci-runner-2" in shown
    assert "live-migration" in shown


def test_server_is_marked_with_curl(run: Run) -> None:
    server = Server.objects.get(name="web-2")
    shown = run("docs/api.md", "## Health marks", **{"$SERVER": str(server.uuid)})
    assert "its disk is slow" in shown


def test_stack_is_planned_and_updated_with_curl(run: Run) -> None:
    stack = Stack.objects.roots().get()
    ids = {"/shop/$STACK": f"/{stack.name}/{stack.uuid}"}
    shown = run("docs/stacks.md", "## Operations", **ids)
    assert shown.count("action_plan") == 2


def only_management_commands(text: str) -> list[list[str]]:
    """Return the name and the arguments of each command. Commands of other programs are not run, and are refused."""
    found = list(management_commands(text))
    assert len(found) == len(list(shell_commands(text))), f"Not all of these are management commands:\n{text}"
    return found


def run_management_commands(document: str, heading: str, number: int | None = None, **names: str) -> str:
    """Run the management commands of a section in this process, and return their output."""
    text = read_text(document, heading, number=number)
    for name, value in names.items():
        text = text.replace(name, value)
    printed = StringIO()
    for name, *arguments in only_management_commands(text):
        call_command(name, *arguments, stdout=printed)
    return printed.getvalue()


@pytest.mark.parametrize(
    ("page", "heading"),
    [
        pytest.param("docs/api.md", "## Request and response bodies"),
        pytest.param("docs/api.md", "## Skipping and restoring actions"),
        pytest.param("docs/api.md", "## Scheduling a plan"),
        pytest.param("docs/api.md", "## Failure handling"),
        pytest.param("docs/api.md", "## Exclusions"),
        pytest.param("docs/api.md", "## Policies"),
        pytest.param("docs/api.md", "## Servers"),
        pytest.param("docs/api.md", "## Tokens"),
        pytest.param("docs/api.md", "## History"),
    ],
)
def test_requests_of_the_api_reference_are_accepted(run: Run, plan: ActionPlan, page: str, heading: str) -> None:
    User.objects.create_superuser("rosa", password=PASSWORD)
    first, second, *_ = plan.actions.filter(action_type="migrate")
    names = {
        '["…", "…"]': f'["{first.uuid}", "{second.uuid}"]',
        "$ACTION": str(first.uuid),
        "$PLAN": str(plan.uuid),
        "$SERVER": str(Server.objects.get(name="web-2").uuid),
        '"imageRef": "…"': '"imageRef": "some-image"',
        '"project_id": "…"': '"project_id": "9a2f41d3b6"',
    }
    run(page, heading, **names)


def test_profiles_nodes_and_clusters_are_created_with_curl(run: Run) -> None:
    assert "shop server" in run("docs/api.md", "## Profiles", **{'"image": "…"': '"image": "some-image"'})
    assert "action_plan" in run("docs/api.md", "## Nodes")
    assert "action_plan" in run("docs/api.md", "## Clusters", number=0)
    run_waiting()
    assert "action_plan" in run("docs/api.md", "## Clusters", number=1)


def test_subscription_is_created_with_curl(run: Run, settings: Settings) -> None:
    settings.WEBHOOK_PRIVATE_ADDRESSES = True
    assert "action_plan.*" in run("docs/api.md", "## Subscriptions", **{"chat.example.org": "127.0.0.1"})


def test_running_action_is_suspended_with_curl(run: Run, plan: ActionPlan) -> None:
    ActionPlan.objects.update(state=ActionPlan.State.ONGOING)
    action = plan.actions.filter(action_type="migrate").first()
    assert action
    plan.actions.filter(pk=action.pk).update(state="ONGOING")
    run("docs/api.md", "## Signals", **{"$ACTION": str(action.uuid)})


def test_plans_are_listed_with_a_token(run: Run, plan: ActionPlan) -> None:
    token = call_command("create_token", "admin", stdout=StringIO())
    shown = run("docs/api.md", "## Authentication and permissions", **{"OS_TOKEN=…": f"OS_TOKEN={token}"})
    assert str(plan.uuid) in shown


def test_resources_of_a_stack_are_read_and_marked_with_curl(run: Run) -> None:
    nested = Stack.objects.get(name="build-runners")
    stack = Stack.objects.roots().get()
    names = {
        "shop/$STACK": f"{stack.name}/{stack.uuid}",
        "$NESTED_NAME": nested.name,
        "$NESTED": str(nested.uuid),
        "$MEMBER": "ci-runner-2",
    }
    run("docs/stacks.md", "## Reading stacks", **names)
    assert StackResource.objects.get(name="ci-runner-2").status == "CHECK_FAILED"


def test_policy_is_created_with_curl(run: Run) -> None:
    assert "senlin.policy.scaling-1.0" in run("docs/policies.md", "# Policies")


@pytest.mark.parametrize(
    ("page", "heading"),
    [
        pytest.param("docs/strategies.md", "## Cluster recovery"),
        pytest.param("docs/strategies.md", "## Unhealthy resources"),
        pytest.param("docs/strategies.md", "### Automatic recovery"),
    ],
)
def test_audits_of_the_strategies_are_created_with_openstack_optimize(run: Run, page: str, heading: str) -> None:
    run(page, heading)
    assert Audit.objects.filter(audit_type="CONTINUOUS").exists()


@pytest.fixture
def typed_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enter a new password at each prompt."""
    monkeypatch.setattr("getpass.getpass", lambda prompt: "another-horse-battery")


@pytest.mark.usefixtures("typed_password")
def test_accounts_quotas_and_tokens_are_administered_by_command(plan: ActionPlan) -> None:
    call_command("create_token", "admin", stdout=StringIO())
    token = AuthToken.objects.get().token_key
    shown = run_management_commands("docs/operating.md", "## People", **{"3f0a92c1d4be557": token})
    assert "second-admin" in shown
    assert not AuthToken.objects.exists()


@pytest.mark.usefixtures("typed_password")
def test_commands_of_the_quick_start_succeed(plan: ActionPlan) -> None:
    assert "rosa" in run_management_commands("README.md", "## Quick start", number=1)


def test_account_for_prometheus_is_created_by_command(db: None) -> None:
    assert "prometheus" in run_management_commands("docs/monitoring.md", "## Metrics", number=0)


def test_subscriptions_are_administered_by_command(db: None, settings: Settings) -> None:
    settings.WEBHOOK_PRIVATE_ADDRESSES, settings.EMAIL_HOST = True, "mail.example.org"
    names = {
        "--subscription NAME": "",
        "NAME ADDRESS…": "mail alice@example.org bob@example.org",
        "NAME URL --kind slack": "slack https://127.0.0.1/slack --kind slack",
        "NAME URL": "chat https://127.0.0.1/hook",
        " NAME ": " chat ",
    }
    assert "chat" in run_management_commands("docs/notifications.md", "## Subscriptions", **names)


def test_policy_file_is_printed_by_command(db: None) -> None:
    assert "action_plan:start" in run_management_commands("docs/authentication.md", "## Policy file")


# The plan of the demonstration has an action that a preflight predicts to fail.
STATUSES = {"preflight_plan": 1, "plans preflight": 1}
# The states of the plan before commands that do not take a recommended one.
STATES = {"continue_plan": "CANCELLED"}


@pytest.mark.parametrize(
    "words", only_management_commands(read_text("docs/operating.md", "## Plans by command")), ids=" ".join
)
def test_plan_is_operated_by_command(in_process: Command, plan: ActionPlan, words: list[str]) -> None:
    state = STATES.get(words[0], "RECOMMENDED")
    plan.actions.update(state=STATES.get(words[0], "PENDING"))
    ActionPlan.objects.update(state=state)
    ended = in_process(*(str(plan.uuid) if word == SOME_UUID else word for word in words))
    assert (ended.status, ended.errors) == (STATUSES.get(words[0], 0), "")


def test_plans_of_a_restored_backup_are_reviewed_by_command(in_process: Command, plan: ActionPlan) -> None:
    plan.launch()
    suspended = read_text("docs/operating.md", "### Restoring a backup", number=1)
    reviewed = read_text("docs/operating.md", "### Restoring a backup", number=2)
    # Without a terminal, a suspension of all plans and a cancellation require the option.
    reviewed = reviewed.replace("cancel PLAN", "cancel PLAN --yes").replace("PLAN", str(plan.uuid))
    for _, *words in shell_commands(suspended.replace("restored", "restored --yes") + reviewed):
        ended = in_process(*words)
        assert (ended.status, ended.errors) == (STATUSES.get(" ".join(words[:2]), 0), ""), words
    assert ActionPlan.objects.get().state == "CANCELLED"


def test_demonstration_is_restored_by_command(plan: ActionPlan) -> None:
    run_management_commands("docs/operating.md", "## The demonstration, again")
    assert ActionPlan.objects.exclude(pk=plan.pk).get().state == "RECOMMENDED"


def test_audit_of_a_failed_compute_node_is_created_with_openstack_optimize(run: Run) -> None:
    shown = run("docs/operating.md", "## When a compute node fails", **{"=compute1": "=compute-01"})
    assert "node_recovery" in shown


def test_audit_of_a_plug_in_is_created_with_openstack_optimize(
    run: Run, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = read_text("docs/writing-a-strategy.md", "## An example", language="python")
    (tmp_path / "documented_strategy.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    settings.STRATEGIES = [*settings.STRATEGIES, "documented_strategy.StopForgotten"]
    synchronize()
    assert "stop_forgotten" in run("docs/writing-a-strategy.md", "## An example", number=1)


def test_plan_is_approved_with_curl(run: Run, plan: ActionPlan, settings: Settings) -> None:
    settings.PLAN_APPROVAL = True
    User.objects.create_superuser("bob", password=PASSWORD)
    run("docs/api.md", "## Approval by another user", **{"$PLAN": str(plan.uuid)})
    assert ActionPlan.objects.get().approved_by == "bob"


def test_response_to_an_operation_on_a_node_has_the_documented_keys(run: Run) -> None:
    run("docs/api.md", "## Profiles", **{'"image": "…"': '"image": "some-image"'})
    documented = json.loads(read_text("docs/api.md", "## Nodes", language="json"))
    assert json.loads(run("docs/api.md", "## Nodes")).keys() == documented.keys()


def test_preflight_has_the_documented_keys(plan: ActionPlan) -> None:
    shown = Caller(User.objects.get(), "1.12").get(f"/action_plans/{plan.uuid}/preflight").json()
    documented = json.loads(read_text("docs/api.md", "## Preflight", language="json"))
    assert shown.keys() == documented.keys()
    assert shown["counts"].keys() == documented["counts"].keys()
    assert shown["actions"][0].keys() == documented["actions"][0].keys()


def test_exclusions_are_administered_by_command(plan: ActionPlan) -> None:
    shown = run_management_commands("docs/operating.md", "## Exclusions by command", PLAN=str(plan.uuid))
    assert "never db" in shown


def test_history_is_exported_by_command(plan: ActionPlan) -> None:
    assert "created_at" in run_management_commands("docs/operating.md", "## History")


def test_deleted_rows_are_purged_by_command(plan: ActionPlan) -> None:
    assert run_management_commands("docs/operating.md", "## Purging")
