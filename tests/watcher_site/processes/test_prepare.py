"""`prepare` makes everything ready for the first start, and leaves a second one alone."""

import socket
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from pytest_django import Settings

from cluster.models import ComputeNode
from tests.watcher_site.site_process import free_port_number


@pytest.fixture(autouse=True)
def free_port(settings: Settings, db: None) -> int:
    settings.PORT = free_port_number()
    settings.DEMO = False
    return settings.PORT


def prepare() -> str:
    printed = StringIO()
    call_command("prepare", stdout=printed)
    return printed.getvalue()


def printed_password(text: str) -> str:
    return text.split("password ")[1].split()[0]


def test_the_printed_password_logs_in() -> None:
    password = printed_password(prepare())
    assert User.objects.get(username="admin", is_superuser=True).check_password(password)


def test_every_start_has_a_password_of_its_own() -> None:
    first = printed_password(prepare())
    User.objects.all().delete()
    assert printed_password(prepare()) != first


def test_a_chosen_password_is_used_and_not_printed(settings: Settings) -> None:
    settings.ADMIN_PASSWORD = "chosen by the operator"
    assert settings.ADMIN_PASSWORD not in prepare()
    assert User.objects.get(username="admin").check_password("chosen by the operator")


def test_a_second_start_keeps_the_password_and_says_that_a_chosen_one_is_ignored(settings: Settings) -> None:
    password = printed_password(prepare())
    settings.ADMIN_PASSWORD = "another that is long enough"
    assert "WATCHER_ADMIN_PASSWORD is ignored" in prepare()
    assert User.objects.get(username="admin").check_password(password)


@pytest.mark.parametrize(
    ("password", "rule"), [("x", "too short"), ("password1", "too common"), ("8241973", "numeric")]
)
def test_a_chosen_password_that_breaks_a_rule_is_refused(settings: Settings, password: str, rule: str) -> None:
    settings.ADMIN_PASSWORD = password
    with pytest.raises(CommandError, match=f"WATCHER_ADMIN_PASSWORD: .*{rule}"):
        prepare()
    assert not User.objects.exists()


def test_the_address_is_printed(free_port: int) -> None:
    assert f"http://127.0.0.1:{free_port}/" in prepare()


def test_a_port_that_is_taken_is_refused_before_anything_else(free_port: int) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", free_port))
        other.listen()
        with pytest.raises(CommandError, match=f"PORT: 127.0.0.1:{free_port} cannot be served"):
            prepare()
    assert not User.objects.exists()


def test_an_address_that_this_machine_cannot_have_is_refused(settings: Settings) -> None:
    settings.BIND = "no such address"
    with pytest.raises(CommandError, match="WATCHER_BIND: no such address is no address"):
        prepare()


def test_the_demonstration_is_loaded_once(settings: Settings) -> None:
    settings.DEMO = True
    prepare()
    loaded = ComputeNode.objects.count()
    prepare()
    assert 0 < loaded == ComputeNode.objects.count()


def test_a_demonstration_that_was_cleared_away_does_not_come_back(settings: Settings) -> None:
    settings.DEMO = True
    prepare()
    ComputeNode.objects.soft_delete()
    prepare()
    assert not ComputeNode.objects.present().exists()


def test_without_the_demonstration_the_cloud_is_empty() -> None:
    prepare()
    assert not ComputeNode.objects.exists()
