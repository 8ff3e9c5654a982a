"""The settings of logins by OpenID Connect: errors prevent the start with one line."""

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


def test_site_starts_during_a_provider_outage_and_passes_the_deployment_check() -> None:
    ended = run("manage.py", "check", "--deploy", "--fail-level", "WARNING", **COMPLETE)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("missing", ["WATCHER_OIDC_CLIENT_ID", "WATCHER_OIDC_CLIENT_SECRET"])
def test_issuer_without_a_client_prevents_the_start_with_one_line(missing: str) -> None:
    ended = run("manage.py", "check", **{**COMPLETE, missing: ""})
    assert (ended.returncode, ended.stderr) == (2, f"{missing}: must be set if WATCHER_OIDC_ISSUER is.\n")


@pytest.mark.parametrize("issuer", ["login.example.org", "http://login.example.org", "https://", f"{ISSUER}?a=b"])
def test_invalid_issuer_is_refused(issuer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHER_OIDC_ISSUER", issuer)
    with pytest.raises(ImproperlyConfigured, match="must be the issuer of an OpenID provider"):
        read_issuer("WATCHER_OIDC_ISSUER")


@pytest.mark.parametrize("groups", ["", "cloud-team", "cloud-team=", "=cloud-admin"])
def test_missing_group_table_is_refused(groups: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHER_OIDC_GROUPS", groups)
    with pytest.raises(ImproperlyConfigured, match="must name a group here for each group of the provider"):
        read_groups("WATCHER_OIDC_GROUPS", ISSUER)
