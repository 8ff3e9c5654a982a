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
# In seconds: the lifetimes of tokens that expire in a test. The first sufficient lifetime is used.
LIFETIMES = (5, 15, 60, 240)


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
    """Return a caller whose token was valid when it was used, and expires soon."""
    for seconds in LIFETIMES:
        with suppress(Unauthorized):
            caller = TokenCaller(keystone.expiring_token("rosa", seconds))
            if use(caller).status_code != 401:
                return caller
    raise AssertionError("no token was valid when it was used")


def test_project_admin_starts_a_plan_and_is_recorded_in_the_history(keystone: KeystoneService) -> None:
    caller, plan = TokenCaller(keystone.token("rosa", project_name="shop")), make_plan({"a": []})
    assert caller.post(f"/action_plans/{plan.uuid}/start").status_code == 200
    entry = HistoryEntry.objects.get()
    assert (entry.user, entry.user_id, entry.project_id) == ("rosa", keystone.users["rosa"], keystone.project)
    assert not User.objects.exists()


def test_system_reader_sees_all_servers(keystone: KeystoneService) -> None:
    make_server(project_id="another")
    caller = TokenCaller(keystone.token("rob", system_scope="all"))
    assert len(caller.get("/servers").json()["servers"]) == 1
    assert caller.get("/action_plans").status_code == 200


def test_project_member_sees_only_servers_of_the_project(keystone: KeystoneService) -> None:
    own = make_server("own", project_id=keystone.project)
    make_server("other", project_id="another")
    caller = TokenCaller(keystone.token("ines", project_name="shop"))
    assert [one["id"] for one in caller.get("/servers").json()["servers"]] == [str(own.uuid)]
    assert caller.get("/action_plans").status_code == 403
    assert caller.delete(f"/servers/{own.uuid}").status_code == 204


def test_project_reader_cannot_delete_a_server_of_the_project(keystone: KeystoneService) -> None:
    own = make_server("own", project_id=keystone.project)
    caller = TokenCaller(keystone.token("rob", project_name="shop"))
    assert caller.get(f"/servers/{own.uuid}").status_code == 200
    assert caller.delete(f"/servers/{own.uuid}").status_code == 403


def test_unknown_role_and_domain_scope_are_forbidden(keystone: KeystoneService) -> None:
    assert TokenCaller(keystone.token("otto", project_name="shop")).get("/goals").status_code == 403
    assert TokenCaller(keystone.token("rosa", domain_id="default")).get("/goals").status_code == 403


def test_unscoped_and_forged_tokens_are_refused(keystone: KeystoneService) -> None:
    token = keystone.token("rosa", project_name="shop")
    for refused in (keystone.token("rosa"), "nonsense", token[:-8] + "AAAAAAAA"):
        answer = TokenCaller(refused).get("/goals")
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, 401)
        assert answer["WWW-Authenticate"] == f'Keystone uri="{keystone.url}/v3"'


def test_revoked_token_is_refused_after_the_cache_time(
    keystone: KeystoneService, settings: Settings, tmp_path: Path
) -> None:
    settings.KEYSTONE_CONFIG = str(keystone.write_options(tmp_path / "other.conf", token_cache_time=1))
    connection = keystone.connect("rosa", project_name="shop")
    caller = TokenCaller(str(connection.session.get_token()))
    assert caller.get("/goals").status_code == 200
    headers = {"X-Subject-Token": caller.headers["X-Auth-Token"]}
    connection.session.delete(f"{keystone.url}/v3/auth/tokens", headers=headers)
    wait_for(lambda: caller.get("/goals").status_code == 401, PATIENCE)


def test_plan_succeeds_after_the_token_that_started_it_has_expired(keystone: KeystoneService) -> None:
    plan = make_plan({"a": [], "b": ["a"]})
    caller = use_expiring_token(keystone, lambda caller: caller.post(f"/action_plans/{plan.uuid}/start"))
    wait_for(lambda: caller.get("/goals").status_code == 401, PATIENCE)
    assert ActionPlan.objects.get().state == ActionPlan.State.PENDING
    run_waiting()
    assert ActionPlan.objects.get().state == ActionPlan.State.SUCCEEDED


def test_expired_token_is_accepted_with_a_service_token_only(keystone: KeystoneService) -> None:
    caller = use_expiring_token(keystone, lambda caller: caller.get("/goals"))
    wait_for(lambda: caller.get("/goals").status_code == 401, PATIENCE)
    service = keystone.token("watcher", project_name="service")
    assert caller.get("/goals", **{"X-Service-Token": service}).status_code == 200
    person = keystone.token("ines", project_name="shop")
    assert caller.get("/goals", **{"X-Service-Token": person}).status_code == 401


def test_token_is_503_while_keystone_is_unavailable(keystone: KeystoneService) -> None:
    caller = TokenCaller(keystone.token("rosa", project_name="shop"))
    keystone.stop()
    try:
        answer = caller.get("/goals")
        assert (answer.status_code, int(answer["Retry-After"]) > 0) == (503, True)
    finally:
        keystone.start()
    assert caller.get("/goals").status_code == 200
