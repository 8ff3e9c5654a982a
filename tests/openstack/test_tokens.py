"""The site with tokens of a real Keystone: scopes, roles, service tokens, revocation and expiry."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.cache import caches
from django.http import HttpResponse
from keystoneauth1.exceptions import Unauthorized
from pytest_django import Settings

from plans.models import ActionPlan
from tests.api import TokenCaller
from tests.builders import make_plan, make_server
from tests.openstack.control_plane import PATIENCE
from tests.openstack.keystone import KeystoneService
from tests.plans.inline import run_waiting
from tests.waiting import wait_for
from watcher_site.keystone.tokens import middleware
from watcher_site.models import HistoryEntry

pytestmark = [pytest.mark.keystone, pytest.mark.django_db]
# In seconds: the times for which tokens that expire in a test are valid. The first one that suffices is used.
LIFETIMES = (15, 60, 240)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeystoneService]:
    found = KeystoneService(tmp_path_factory.mktemp("keystone"))
    found.start()
    try:
        found.fill()
        yield found
    finally:
        found.stop()


@pytest.fixture
def keystone(service: KeystoneService, settings: Settings, tmp_path: Path) -> Iterator[KeystoneService]:
    settings.TOKEN_SOURCES = ["local", "keystone"]
    settings.KEYSTONE_CONFIG = str(service.write_options(tmp_path / "watcher.conf"))
    middleware.cache_clear()
    caches["keystone"].clear()
    yield service
    middleware.cache_clear()


def use_expiring_token(keystone: KeystoneService, use: Callable[[TokenCaller], HttpResponse]) -> TokenCaller:
    """Return a caller whose token was still valid when it was used, but expires soon on a machine that is not busy."""
    for seconds in LIFETIMES:
        with suppress(Unauthorized):
            caller = TokenCaller(keystone.expiring_token("rosa", seconds))
            if use(caller).status_code != 401:
                return caller
    raise AssertionError("no token was valid when it was used")


def test_an_admin_of_a_project_starts_a_plan_and_history_has_name_and_id(keystone: KeystoneService) -> None:
    caller, plan = TokenCaller(keystone.token("rosa", project_name="shop")), make_plan({"a": []})
    assert caller.post(f"/action_plans/{plan.uuid}/start").status_code == 200
    entry = HistoryEntry.objects.get()
    assert (entry.user, entry.user_id, entry.project_id) == ("rosa", keystone.users["rosa"], keystone.project)
    assert not User.objects.exists()


def test_a_reader_of_the_system_sees_all_servers(keystone: KeystoneService) -> None:
    make_server(project_id="another")
    caller = TokenCaller(keystone.token("rob", system_scope="all"))
    assert len(caller.get("/servers").json()["servers"]) == 1
    assert caller.get("/action_plans").status_code == 200


def test_a_member_sees_the_servers_of_the_project_alone(keystone: KeystoneService) -> None:
    own = make_server("own", project_id=keystone.project)
    make_server("other", project_id="another")
    caller = TokenCaller(keystone.token("ines", project_name="shop"))
    assert [one["id"] for one in caller.get("/servers").json()["servers"]] == [str(own.uuid)]
    assert caller.get("/action_plans").status_code == 403
    assert caller.delete(f"/servers/{own.uuid}").status_code == 204


def test_a_reader_of_a_project_changes_no_server_of_it(keystone: KeystoneService) -> None:
    own = make_server("own", project_id=keystone.project)
    caller = TokenCaller(keystone.token("rob", project_name="shop"))
    assert caller.get(f"/servers/{own.uuid}").status_code == 200
    assert caller.delete(f"/servers/{own.uuid}").status_code == 403


def test_an_unknown_role_and_the_scope_of_a_domain_give_no_right(keystone: KeystoneService) -> None:
    assert TokenCaller(keystone.token("otto", project_name="shop")).get("/goals").status_code == 403
    assert TokenCaller(keystone.token("rosa", domain_id="default")).get("/goals").status_code == 403


def test_tokens_that_are_unscoped_or_forged_are_refused(keystone: KeystoneService) -> None:
    token = keystone.token("rosa", project_name="shop")
    for refused in (keystone.token("rosa"), "nonsense", token[:-8] + "AAAAAAAA"):
        answer = TokenCaller(refused).get("/goals")
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, 401)
        assert answer["WWW-Authenticate"] == f'Keystone uri="{keystone.url}/v3"'


def test_a_revoked_token_is_refused_when_the_cache_has_forgotten_it(
    keystone: KeystoneService, settings: Settings, tmp_path: Path
) -> None:
    settings.KEYSTONE_CONFIG = str(keystone.write_options(tmp_path / "other.conf", token_cache_time=1))
    connection = keystone.connect("rosa", project_name="shop")
    caller = TokenCaller(str(connection.session.get_token()))
    assert caller.get("/goals").status_code == 200
    headers = {"X-Subject-Token": caller.headers["X-Auth-Token"]}
    connection.session.delete(f"{keystone.url}/v3/auth/tokens", headers=headers)
    wait_for(lambda: caller.get("/goals").status_code == 401, PATIENCE)


def test_a_plan_runs_on_when_the_token_that_started_it_has_expired(keystone: KeystoneService) -> None:
    plan = make_plan({"a": [], "b": ["a"]})
    caller = use_expiring_token(keystone, lambda caller: caller.post(f"/action_plans/{plan.uuid}/start"))
    wait_for(lambda: caller.get("/goals").status_code == 401, PATIENCE)
    assert ActionPlan.objects.get().state == ActionPlan.State.PENDING
    run_waiting()
    assert ActionPlan.objects.get().state == ActionPlan.State.SUCCEEDED


def test_an_expired_token_is_accepted_with_the_token_of_a_service(keystone: KeystoneService) -> None:
    caller = use_expiring_token(keystone, lambda caller: caller.get("/goals"))
    wait_for(lambda: caller.get("/goals").status_code == 401, PATIENCE)
    service = keystone.token("watcher", project_name="service")
    assert caller.get("/goals", **{"X-Service-Token": service}).status_code == 200
    person = keystone.token("ines", project_name="shop")
    assert caller.get("/goals", **{"X-Service-Token": person}).status_code == 401


def test_without_keystone_tokens_are_answered_503_until_it_is_back(keystone: KeystoneService) -> None:
    caller = TokenCaller(keystone.token("rosa", project_name="shop"))
    keystone.stop()
    try:
        answer = caller.get("/goals")
        assert (answer.status_code, int(answer["Retry-After"]) > 0) == (503, True)
    finally:
        keystone.start()
    assert caller.get("/goals").status_code == 200
