"""Processes of the previous release on the new schema (docs/operating.md, "Upgrading")."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from actions.models import Action
from plans.models import ActionPlan
from tests.builders import action, make_flavor, make_node, make_plan, make_server, make_strategy
from tests.database import database_url
from tests.end_to_end.upgrades.load import COLLECTIONS
from tests.end_to_end.upgrades.release import previous_release
from tests.end_to_end.upgrades.site import Client, Site, change_of_state, environment

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
PAGES = ("/compute/v2.1/servers", "/metrics")


@pytest.fixture
def old_site(tmp_path: Path) -> Iterator[Site]:
    """Return the previous release, on the schema of this one."""
    site = Site(previous_release(tmp_path / "release"), environment(database_url()), tmp_path / "logs")
    yield site
    site.stop()


@pytest.fixture
def old_client(cloud_admin: User, old_site: Site, capsys: pytest.CaptureFixture[str]) -> Client:
    call_command("create_token", cloud_admin.username)
    token = capsys.readouterr().out.split()[-1]
    old_site.start_web()
    return Client(old_site.port, token)


def test_previous_release_serves_requests_on_the_new_schema(old_client: Client) -> None:
    """All requests are in one test, since the start of the process takes most of the time."""
    make_strategy()
    node = make_node()
    make_flavor("small")
    make_server(node=node)
    plan = make_plan({"a": [], "b": []})
    skipped = action(plan, "a")
    for collection in COLLECTIONS:
        old_client.require(200, "GET", f"/v1/{collection}")
    for page in PAGES:
        old_client.require(200, "GET", page)
    old_client.require(201, "POST", "/v1/exclusions", {"name": "freeze", "action_types": ["migrate"]})
    old_client.require(201, "POST", "/v1/audit_templates", {"name": "nightly", "goal": "dummy"})
    audit = old_client.require(201, "POST", "/v1/audits", {"audit_type": "ONESHOT", "goal": "dummy"})
    old_client.require(200, "GET", f"/v1/audits/{audit['uuid']}")
    old_client.require(201, "POST", "/v1/profiles", {"name": "web", "spec": {"flavor": "small"}})
    old_client.require(202, "POST", "/v1/clusters", {"name": "shop", "profile": "web", "desired_capacity": 1})
    old_client.require(200, "PATCH", f"/v1/actions/{skipped.uuid}", change_of_state("SKIPPED"))
    old_client.require(200, "PATCH", f"/v1/action_plans/{plan.uuid}", change_of_state("PENDING"))
    assert Action.objects.get(pk=skipped.pk).state == "SKIPPED"
    assert ActionPlan.objects.get(pk=plan.pk).state == "PENDING"
    assert Action.objects.filter(action_type="CLUSTER_CREATE").exists()


def test_previous_release_executes_plans_on_the_new_schema(old_site: Site) -> None:
    plan = make_plan({"a": [], "b": ["a"]})
    old_site.succeed("apply_plan", str(plan.uuid))
    assert plan.actions.count_states() == {"SUCCEEDED": 2}
