"""The settings of Keystone's tokens: errors prevent the start with one line, and the defaults import no middleware."""

import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from tests.watcher_site.keystone.identity import Keystone
from tests.watcher_site.settings_file import read_settings
from tests.watcher_site.site_process import run
from watcher_site.configuration.keystone import ROLES, read_keystone_file, read_roles, read_token_sources

FILE = "WATCHER_KEYSTONE_CONFIG"


def refusal(file: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(FILE, str(file))
    with pytest.raises(ImproperlyConfigured) as refused:
        read_keystone_file(FILE, is_needed=True)
    assert "\n" not in str(refused.value)
    return str(refused.value).removeprefix(f"{FILE}: {file}: ")


@pytest.mark.parametrize(
    "command", [["manage.py", "check"], ["-m", "gunicorn", "--config", "python:watcher_site.gunicorn"]]
)
@pytest.mark.parametrize(
    ("variables", "line"),
    [
        ({"WATCHER_AUTH": "ldap"}, "WATCHER_AUTH: must be local, keystone or local,keystone, and is ldap.\n"),
        (
            {"WATCHER_AUTH": "keystone"},
            "WATCHER_KEYSTONE_CONFIG: must be set if WATCHER_AUTH has keystone: the path of a file with a section"
            " [keystone_authtoken].\n",
        ),
    ],
)
def test_invalid_setting_prevents_the_start_with_one_line(
    command: list[str], variables: dict[str, str], line: str
) -> None:
    ended = run(*command, **variables)
    assert (ended.returncode, ended.stderr) == (2, line)


def test_file_without_the_section_prevents_the_start_with_one_line(tmp_path: Path) -> None:
    file = tmp_path / "watcher.conf"
    file.write_text("[DEFAULT]\n")
    ended = run("manage.py", "check", WATCHER_AUTH="local,keystone", **{FILE: str(file)})
    expected = f"WATCHER_KEYSTONE_CONFIG: {file}: has no section [keystone_authtoken].\n"
    assert (ended.returncode, ended.stderr) == (2, expected)


def test_site_starts_during_a_keystone_outage(running: Keystone, tmp_path: Path) -> None:
    file = running.write_options(tmp_path / "watcher.conf", auth_url="http://127.0.0.1:9")
    ended = run("manage.py", "check", WATCHER_AUTH="keystone", **{FILE: str(file)})
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("value", ["", "ldap", "local,ldap", "local,local", "Keystone"])
def test_unknown_token_source_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHER_AUTH", value)
    with pytest.raises(ImproperlyConfigured, match=r"^WATCHER_AUTH: must be local, keystone or local,keystone"):
        read_token_sources("WATCHER_AUTH")


@pytest.mark.parametrize("value", ["local,keystone", "keystone, local"])
def test_token_sources_can_be_in_any_order(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHER_AUTH", value)
    assert set(read_token_sources("WATCHER_AUTH")) == {"local", "keystone"}


def test_keystone_without_its_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHER_AUTH", "keystone")
    monkeypatch.setattr("watcher_site.configuration.keystone.find_spec", lambda name: None)
    with pytest.raises(
        ImproperlyConfigured, match=r"needs the package keystonemiddleware, which the extra \[openstack\]"
    ):
        read_token_sources("WATCHER_AUTH")


def test_missing_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "must be the path of a file" in refusal(tmp_path / "missing.conf", monkeypatch)


def test_error_names_an_invalid_line_without_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "watcher.conf"
    file.write_text("[keystone_authtoken]\nsecret\n")
    assert refusal(file, monkeypatch) == "line 2 cannot be parsed."


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"auth_type": None}, "[keystone_authtoken] has no auth_type."),
        ({"auth_type": "magic"}, "The plugin magic could not be found"),
        ({"auth_url": None}, "Auth plugin requires parameters which were not given: auth_url"),
        ({"auth_url": "keystone/v3"}, "[keystone_authtoken] auth_url must begin with https:// or http:// and a host"),
        ({"username": None}, "[keystone_authtoken] has no username."),
        ({"password": None}, "[keystone_authtoken] has no password."),
        ({"token_cache_time": "soon"}, "Value for option token_cache_time is not valid: "),
        ({"memcache_security_strategy": "ENCRYPT"}, "memcache_secret_key must be defined"),
        (
            {"memcached_servers": "127.0.0.1:11211", "memcache_sasl_enabled": "true"},
            "memcached_servers needs the module bmemcached, which is not installed.",
        ),
    ],
)
def test_invalid_option_is_refused(
    running: Keystone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], expected: str
) -> None:
    file = running.write_options(tmp_path / "watcher.conf", **options)
    assert refusal(file, monkeypatch).startswith(expected)


def test_password_can_be_in_another_section(
    running: Keystone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = running.write_options(tmp_path / "watcher.conf")
    text = file.read_text().replace("[keystone_authtoken]", "[service_user]")
    file.write_text(f"[keystone_authtoken]\nauth_section = service_user\n{text}")
    monkeypatch.setenv(FILE, str(file))
    assert read_keystone_file(FILE, is_needed=True) == str(file)


def test_role_table_is_read_with_scopes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHER_KEYSTONE_ROLES", "Operator=cloud-admin, system:auditor=reader,project:owner=member")
    assert read_roles("WATCHER_KEYSTONE_ROLES") == {
        "operator": "cloud-admin",
        "system:auditor": "reader",
        "project:owner": "member",
    }


@pytest.mark.parametrize("value", ["admin", "admin=root", "domain:admin=reader", "=reader", "system:=reader"])
def test_invalid_role_table_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHER_KEYSTONE_ROLES", value)
    with pytest.raises(ImproperlyConfigured, match=r"^WATCHER_KEYSTONE_ROLES: must name one of cloud-admin, reader,"):
        read_roles("WATCHER_KEYSTONE_ROLES")


def test_default_token_source_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WATCHER_AUTH", FILE, "WATCHER_KEYSTONE_ROLES"):
        monkeypatch.delenv(name, raising=False)
    settings = read_settings()
    assert (settings["TOKEN_SOURCES"], settings["KEYSTONE_ROLES"]) == (["local"], dict(ROLES))


def test_middleware_is_not_imported_without_keystone() -> None:
    code = (
        "import sys; from watcher_site.wsgi import application; from django.test import Client;"
        "print(Client().get('/v1/goals', headers={'X-Auth-Token': ''}).status_code);"
        "print([name for name in sys.modules if name.startswith(('keystone', 'oslo', 'webob'))])"
    )
    ended = run("-c", code, WATCHER_HTTPS="false", ALLOWED_HOSTS="testserver")
    assert ended.stdout.split("\n")[1] == "[]", (ended.stdout, ended.stderr, sys.version)
