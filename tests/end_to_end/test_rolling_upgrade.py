"""Web processes of the previous release on the new schema (docs/operating.md, "Upgrading")."""

import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from actions.models import Action
from plans.models import ActionPlan
from tests.builders import action, make_flavor, make_node, make_plan, make_server, make_strategy
from tests.database import database_url
from tests.waiting import wait_for
from tests.watcher_site.site_process import SOUND, free_port_number

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
ROOT = Path(__file__).parent.parent.parent
# The last release, until there are tags.
LAST_RELEASE = "34612a8"
COLLECTIONS = (
    *("goals", "strategies", "audit_templates", "audits", "action_plans", "actions", "services", "scoring_engines"),
    *("exclusions", "servers", "clusters", "nodes", "profiles", "policies", "stacks", "subscriptions", "history"),
)
PAGES = ("/compute/v2.1/servers", "/metrics")


def last_release() -> bytes:
    """Return the tree of the last release, as a tar file."""
    archive = subprocess.run(["git", "archive", LAST_RELEASE], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        pytest.skip(f"this clone has no commit {LAST_RELEASE}: {archive.stderr.decode().strip()}")
    return archive.stdout


class Site:
    """A web process, and an administrator who calls it."""

    def __init__(self, port: int, token: str) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.headers = {"X-Auth-Token": token, "OpenStack-API-Version": "infra-optim 1.13"}

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return the status and the body of an answer."""
        data = None if body is None else json.dumps(body).encode()
        headers = {**self.headers, "Content-Type": "application/json"}
        request = Request(f"{self.address}{path}", data, headers, method=method)  # noqa: S310
        try:
            with urlopen(request, timeout=60) as answer:  # noqa: S310
                return answer.status, read(answer.read())
        except HTTPError as problem:
            return problem.code, problem.read()
        except OSError as problem:
            return 0, problem

    def require(self, status: int, method: str, path: str, body: Any = None) -> Any:
        """Return the body of an answer that has this status."""
        found, answer = self.call(method, path, body)
        assert found == status, (method, path, answer)
        return answer


def read(text: bytes) -> Any:
    return json.loads(text) if text[:1] in (b"{", b"[") else text


def environment() -> dict[str, str]:
    return {**SOUND, "DATABASE_URL": database_url(), "ALLOWED_HOSTS": "127.0.0.1", "WATCHER_HTTPS": "false"}


def change_of_state(state: str) -> list[dict[str, str]]:
    return [{"op": "replace", "path": "/state", "value": state}]


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """Return the folder with the code of the last release."""
    tree = tmp_path / "release"
    with tarfile.open(fileobj=io.BytesIO(last_release())) as files:
        files.extractall(tree, filter="data")
    return tree


@pytest.fixture
def old_site(cloud_admin: User, release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Site]:
    """Serve the last release on the schema of this one."""
    call_command("create_token", cloud_admin.username)
    token = capsys.readouterr().out.split()[-1]
    port = free_port_number()
    command = [sys.executable, "-m", "gunicorn", "--config", "python:watcher_site.gunicorn"]
    command += ["--bind", f"127.0.0.1:{port}", "--workers", "1"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=release, env=environment(), stdout=log, stderr=log)
        try:
            site = Site(port, token)
            wait_for(lambda: process.poll() is not None or site.call("GET", "/healthz")[0] == 200)
            assert process.poll() is None, (tmp_path / "log").read_text()
            yield site
        finally:
            process.terminate()
            process.wait(60)


def test_the_old_code_serves_on_the_new_schema(old_site: Site) -> None:
    """Serve the last release in one process for all tests, since its start takes most of the time."""
    make_strategy()
    node = make_node()
    make_flavor("small")
    make_server(node=node)
    plan = make_plan({"a": [], "b": []})
    skipped = action(plan, "a")
    for collection in COLLECTIONS:
        old_site.require(200, "GET", f"/v1/{collection}")
    for page in PAGES:
        old_site.require(200, "GET", page)
    old_site.require(201, "POST", "/v1/exclusions", {"name": "freeze", "action_types": ["migrate"]})
    old_site.require(201, "POST", "/v1/audit_templates", {"name": "nightly", "goal": "dummy"})
    audit = old_site.require(201, "POST", "/v1/audits", {"audit_type": "ONESHOT", "goal": "dummy"})
    old_site.require(200, "GET", f"/v1/audits/{audit['uuid']}")
    old_site.require(201, "POST", "/v1/profiles", {"name": "web", "spec": {"flavor": "small"}})
    old_site.require(202, "POST", "/v1/clusters", {"name": "shop", "profile": "web", "desired_capacity": 1})
    old_site.require(200, "PATCH", f"/v1/actions/{skipped.uuid}", change_of_state("SKIPPED"))
    old_site.require(200, "PATCH", f"/v1/action_plans/{plan.uuid}", change_of_state("PENDING"))
    assert Action.objects.get(pk=skipped.pk).state == "SKIPPED"
    assert ActionPlan.objects.get(pk=plan.pk).state == "PENDING"
    assert Action.objects.filter(action_type="CLUSTER_CREATE").exists()


def test_the_old_code_executes_plans_on_the_new_schema(release: Path) -> None:
    plan = make_plan({"a": [], "b": ["a"]})
    command = [sys.executable, "manage.py", "apply_plan", str(plan.uuid)]
    process = subprocess.run(command, cwd=release, env=environment(), capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert plan.actions.count_states() == {"SUCCEEDED": 2}
