"""The limit of failed logins, which applies to every kind of login and never locks out the owner of an account."""

import threading
from base64 import b64encode
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.hashers import check_password
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from audits.engine.engine import DecisionEngine
from tests.waiting import PATIENCE
from watcher_site.accounts.login_limits import Login, LoginsBusy, Verifications, record_summaries
from watcher_site.accounts.users import set_active
from watcher_site.models import FailedLogins, HistoryEntry

pytestmark = pytest.mark.django_db

ATTACKER, OWNER = "203.0.113.7", "198.51.100.4"
MOST, MOST_OF_ADDRESS = 3, 6
Send = Callable[..., HttpResponse]


@pytest.fixture(autouse=True)
def _low_limits(monkeypatch: pytest.MonkeyPatch, cloud_admin: User) -> None:
    cache.clear()
    monkeypatch.setattr(settings, "MOST_FAILED_LOGINS", MOST)
    monkeypatch.setattr(settings, "MOST_FAILED_LOGINS_OF_ADDRESS", MOST_OF_ADDRESS)


def basic(path: str, name: str, password: str, address: str = ATTACKER) -> HttpResponse:
    credential = b64encode(f"{name}:{password}".encode()).decode()
    return Client().get(path, headers={"Authorization": f"Basic {credential}"}, REMOTE_ADDR=address)


def goals(name: str, password: str, address: str = ATTACKER) -> HttpResponse:
    return basic("/v1/goals", name, password, address)


def log_in(name: str, password: str, address: str = ATTACKER) -> HttpResponse:
    return Client().post(reverse("login"), {"username": name, "password": password}, REMOTE_ADDR=address)


def guess(times: int, name: str = "alice", address: str = ATTACKER) -> None:
    for number in range(times):
        goals(name, f"guess-{number}", address)


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the passwords that were hashed."""
    found: list[str] = []

    def note(password: str, *args: Any, **options: Any) -> Any:
        found.append(password)
        return check_password(password, *args, **options)

    monkeypatch.setattr("django.contrib.auth.base_user.check_password", note)
    monkeypatch.setattr(User, "set_password", lambda self, password: found.append(password))
    return found


@pytest.mark.parametrize(
    "path", ["/v1/goals", "/metrics", "/compute/v2.1/servers", "/orchestration/v1/p/stacks", "/v1/openapi.json"]
)
def test_limit_applies_wherever_http_basic_is_accepted(path: str) -> None:
    for _ in range(MOST):
        assert basic(path, "alice", "wrong").status_code == 401
    answer = basic(path, "alice", "wrong")
    assert answer.status_code == 429
    assert 0 < int(answer["Retry-After"]) <= settings.FAILED_LOGIN_WINDOW.total_seconds()


def test_watcherclient_gets_no_retry_after() -> None:
    guess(MOST)
    credential = b64encode(b"alice:wrong").decode()
    headers = {"Authorization": f"Basic {credential}", "User-Agent": "python-watcherclient"}
    answer = Client().get("/v1/goals", headers=headers, REMOTE_ADDR=ATTACKER)
    assert (answer.status_code, "Retry-After" in answer) == (429, False)


def test_readiness_probe_with_a_wrong_password_succeeds_beyond_the_limit() -> None:
    guess(MOST)
    answer = basic("/readyz", "alice", "wrong")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_refusal_has_the_error_format_of_the_api() -> None:
    guess(MOST)
    assert "Too many failed logins" in goals("alice", "wrong").json()["error_message"]


def test_refusal_has_the_error_format_of_the_compute_mount() -> None:
    guess(MOST)
    assert basic("/compute/v2.1/servers", "alice", "wrong").json()["overLimit"]["code"] == 429


@pytest.mark.parametrize("command", [["users", "change", "alice", "--enable"], ["enable_user", "alice"]])
def test_enabling_an_account_resets_its_failed_logins(command: list[str]) -> None:
    guess(MOST)
    guess(1, "bob")
    assert goals("alice", "alice-password").status_code == 429
    call_command(*command)
    assert "Failed logins were reset: the account can log in again." in messages()
    assert log_in("alice", "alice-password").status_code == 302
    assert sorted(FailedLogins.objects.values_list("number", flat=True)) == [1, MOST + 1]


def test_console_resets_the_failed_logins_of_an_account_that_it_enables(client: Client, admin_user: User) -> None:
    guess(MOST)
    set_active("alice", False)
    client.force_login(admin_user)
    page = reverse("users:enable", args=[User.objects.get(username="alice").pk])
    assert client.post(page).status_code == 302
    assert goals("alice", "alice-password").status_code == 200


def test_enabling_an_account_below_the_limit_records_nothing() -> None:
    guess(MOST - 1)
    before = messages()
    set_active("alice", True)
    assert messages() == before


def test_login_page_shows_the_time_to_wait() -> None:
    guess(MOST)
    answer = log_in("alice", "wrong")
    assert answer.status_code == 429
    assert "Too many failed logins from your address. Try again in 10 minutes." in answer.content.decode()
    assert int(answer["Retry-After"]) > 0


def test_failed_logins_of_the_console_count_for_the_api() -> None:
    for _ in range(MOST):
        assert log_in("alice", "wrong").status_code == 200
    assert goals("alice", "wrong").status_code == 429


def test_correct_password_is_not_verified_beyond_the_limit(verified: list[str]) -> None:
    guess(MOST)
    verified.clear()
    assert goals("alice", "alice-password").status_code == 429
    assert log_in("alice", "alice-password").status_code == 429
    assert verified == []


def test_refused_login_takes_three_queries() -> None:
    guess(MOST)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        goals("alice", "wrong")
    assert len(queries) == 3


def test_owner_can_log_in_from_another_address() -> None:
    guess(MOST + 1)
    assert goals("alice", "alice-password", OWNER).status_code == 200
    assert log_in("alice", "alice-password", OWNER).status_code == 302


def test_other_accounts_are_not_limited_at_the_same_address(reader: User) -> None:
    guess(MOST + 1)
    assert goals("rob", "rob-password").status_code == 200


def test_address_that_tries_many_names_is_limited_for_all_accounts(reader: User) -> None:
    for number in range(MOST_OF_ADDRESS):
        assert goals(f"name-{number}", "wrong").status_code == 401
    assert goals("rob", "rob-password").status_code == 429


def test_name_without_an_account_is_limited_like_an_account() -> None:
    assert [goals("nobody", "wrong").status_code for _ in range(MOST + 1)] == [*[401] * MOST, 429]


def test_addresses_of_one_ipv6_network_are_limited_together() -> None:
    for number in range(MOST):
        guess(1, address=f"2001:db8::{number}")
    assert goals("alice", "wrong", "2001:db8::ffff").status_code == 429
    assert goals("alice", "alice-password", "2001:db8:0:1::1").status_code == 200


def test_login_resets_the_count_of_its_account_but_not_of_its_address(reader: User) -> None:
    guess(MOST - 1)
    assert goals("alice", "alice-password").status_code == 200
    guess(MOST - 1)
    assert goals("rob", "rob-password").status_code == 200
    assert sorted(FailedLogins.objects.values_list("number", flat=True)) == [MOST - 1, 2 * (MOST - 1)]


def test_limit_ends_with_its_window() -> None:
    guess(MOST + 1)
    end_window()
    assert goals("alice", "alice-password").status_code == 200


def test_cached_verification_admits_the_owner_while_the_address_is_limited() -> None:
    goals("alice", "alice-password")
    for number in range(MOST_OF_ADDRESS):
        goals(f"name-{number}", "wrong")
    assert goals("alice", "alice-password").status_code == 200


def test_wrong_password_deletes_the_cached_verification_of_its_address() -> None:
    goals("alice", "alice-password")
    guess(MOST + 1)
    assert goals("alice", "alice-password").status_code == 429


def test_wrong_passwords_at_one_address_keep_the_verification_cached_for_another(verified: list[str]) -> None:
    goals("alice", "alice-password", OWNER)
    guess(MOST)
    verified.clear()
    assert goals("alice", "alice-password", OWNER).status_code == 200
    assert verified == []


def test_history_records_the_reached_limit() -> None:
    guess(MOST)
    entry = HistoryEntry.objects.filter(details__failed_logins=MOST).get()
    assert (entry.deed, entry.outcome, entry.object_name) == ("user.login", "refused", "alice")
    assert entry.message.startswith(f"{MOST} failed logins for alice from {ATTACKER} in ")
    assert "Further ones are refused until" in entry.message


def test_history_records_the_number_of_failed_logins_after_the_window() -> None:
    guess(MOST + 20)
    end_window()
    record_summaries()
    assert f"{MOST + 20} failed logins for alice from {ATTACKER} in 10 minutes." in messages()
    assert not FailedLogins.objects.exists()


def test_decision_engine_records_ended_windows() -> None:
    guess(MOST + 20)
    end_window()
    DecisionEngine().record_failed_logins()
    assert f"{MOST + 20} failed logins for alice from {ATTACKER} in 10 minutes." in messages()


def test_next_failed_login_of_any_account_records_ended_windows() -> None:
    guess(MOST + 20)
    end_window()
    guess(1, address=OWNER)
    assert f"{MOST + 20} failed logins for alice from {ATTACKER} in 10 minutes." in messages()


def test_name_without_an_account_is_not_stored() -> None:
    for _ in range(MOST):
        goals("my-own-password", "")
    assert "my-own-password" not in str([*FailedLogins.objects.values(), *HistoryEntry.objects.values()])
    assert any(f"{MOST} failed logins from {ATTACKER}" in message for message in messages())


def test_failed_logins_below_the_limit_have_no_summary() -> None:
    guess(MOST - 1)
    end_window()
    HistoryEntry.objects.all().delete()
    record_summaries()
    assert messages() == []


def test_at_most_half_of_the_threads_verify_passwords_or_wait(reader: User) -> None:
    verifications, first, go_on = Verifications(4), threading.Event(), threading.Event()
    waiting: list[threading.Thread] = []

    def verify() -> None:
        with verifications.wait_for_turn():
            first.set()
            go_on.wait(PATIENCE)

    for _ in range(2):
        waiting.append(threading.Thread(target=verify))
        waiting[-1].start()
    assert first.wait(PATIENCE)
    while verifications.places._value:
        pass
    with pytest.raises(LoginsBusy), verifications.wait_for_turn():
        pass
    go_on.set()
    for thread in waiting:
        thread.join(PATIENCE)
    with verifications.wait_for_turn():
        pass


def test_login_beyond_the_verification_threads_is_503(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Verifications(1)
    monkeypatch.setattr("watcher_site.backends.verifications", busy)
    with busy.wait_for_turn():
        api, page = goals("alice", "alice-password"), log_in("alice", "alice-password")
    assert (api.status_code, api["Retry-After"]) == (503, "1")
    assert (page.status_code, page["Retry-After"]) == (503, "1")
    assert "Too many passwords are being verified" in page.content.decode()
    assert not FailedLogins.objects.exists()


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_concurrent_failed_logins_are_all_counted() -> None:
    def fail(address: str) -> None:
        try:
            Login(address, "alice").record_failure()
        finally:
            connection.close()

    threads = [threading.Thread(target=fail, args=(ATTACKER,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(FailedLogins.objects.values_list("number", flat=True)) == [8, 8]


def end_window() -> None:
    FailedLogins.objects.update(began_at=timezone.now() - settings.FAILED_LOGIN_WINDOW - timedelta(seconds=1))


def messages() -> list[str]:
    return list(HistoryEntry.objects.values_list("message", flat=True))
