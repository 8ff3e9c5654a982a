"""``manage.py register_endpoints`` with invalid arguments and settings. `tests.openstack` has the other tests."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings


@pytest.mark.parametrize("url", ["watcher.example.org", "ftp://watcher.example.org", "https://"])
def test_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(CommandError, match=r"url: .* is not an address") as refusal:
        call_command("register_endpoints", url)
    assert refusal.value.returncode == 2


@pytest.mark.parametrize("url", ["https://watcher.example.org/v1", "https://example.org/watcher/v1/"])
def test_url_with_the_version_is_refused(url: str) -> None:
    with pytest.raises(CommandError, match="url: must be the address of the site without /v1"):
        call_command("register_endpoints", url)


def test_unknown_cloud_is_refused(settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "clouds.yaml").write_text("clouds: {}\n")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    settings.OPENSTACK_CLOUD = "nowhere"
    with pytest.raises(CommandError, match=r"OS_CLOUD and clouds.yaml do not define a usable cloud") as refusal:
        call_command("register_endpoints", "https://watcher.example.org")
    assert refusal.value.returncode == 2


@pytest.mark.parametrize(("arguments", "chosen"), [((), "only"), (("--cloud", "other"), "other")])
def test_first_line_of_the_output_names_the_cloud(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: tuple[str, ...],
    chosen: str,
) -> None:
    login = "{auth_url: 'http://127.0.0.1:9/v3', username: a, password: b, project_name: c}"
    (tmp_path / "clouds.yaml").write_text(f"clouds: {{{chosen}: {{auth: {login}}}}}\n")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    settings.OPENSTACK_CLOUD = ""
    output = StringIO()
    with pytest.raises(CommandError, match="The cloud does not answer"):
        call_command("register_endpoints", "https://watcher.example.org", *arguments, stdout=output)
    assert output.getvalue().splitlines() == [f"cloud {chosen}: http://127.0.0.1:9/v3"]


def test_unreachable_keystone_ends_the_command_with_status_1(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    login = "{auth_url: 'http://127.0.0.1:9/v3', username: a, password: b, project_name: c}"
    (tmp_path / "clouds.yaml").write_text(f"clouds: {{lost: {{auth: {login}}}}}\n")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    settings.OPENSTACK_CLOUD = "lost"
    with pytest.raises(CommandError, match="The cloud does not answer") as refusal:
        call_command("register_endpoints", "https://watcher.example.org")
    assert refusal.value.returncode == 1
