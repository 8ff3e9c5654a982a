"""The settings of logins by OpenID Connect: wrong ones stop the start with one line."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from tests.watcher_site.site_process import run
from watcher_site.configuration.openid import read_groups, read_issuer

ISSUER = "https://login.example.org/realms/staff"
COMPLETE = {
    "WATCHER_OIDC_ISSUER": ISSUER,
    "WATCHER_OIDC_CLIENT_ID": "watcher",
    "WATCHER_OIDC_CLIENT_SECRET": "secret",
    "WATCHER_OIDC_GROUPS": "cloud-team=cloud-admin",
}


def test_a_site_with_a_provider_starts_without_its_answer_and_is_fit_for_deployment() -> None:
    ended = run("manage.py", "check", "--deploy", "--fail-level", "WARNING", **COMPLETE)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("missing", ["WATCHER_OIDC_CLIENT_ID", "WATCHER_OIDC_CLIENT_SECRET"])
def test_an_issuer_without_a_client_stops_the_start_with_one_line(missing: str) -> None:
    ended = run("manage.py", "check", **{**COMPLETE, missing: ""})
    assert (ended.returncode, ended.stderr) == (2, f"{missing}: must be set if WATCHER_OIDC_ISSUER is.\n")


@pytest.mark.parametrize("issuer", ["login.example.org", "http://login.example.org", "https://", f"{ISSUER}?a=b"])
def test_an_issuer_is_an_address_with_https(issuer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHER_OIDC_ISSUER", issuer)
    with pytest.raises(ImproperlyConfigured, match="must be the issuer of an OpenID provider"):
        read_issuer("WATCHER_OIDC_ISSUER")


@pytest.mark.parametrize("groups", ["", "cloud-team", "cloud-team=", "=cloud-admin"])
def test_a_provider_needs_a_table_of_groups(groups: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHER_OIDC_GROUPS", groups)
    with pytest.raises(ImproperlyConfigured, match="must name a group here for each group of the provider"):
        read_groups("WATCHER_OIDC_GROUPS", ISSUER)
