"""`prepare` makes everything ready for the first start, and leaves a second one alone."""

import socket
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from pytest_django import Settings

from cluster.models import ComputeNode


@pytest.fixture(autouse=True)
def free_port(settings: Settings, db: None) -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        settings.PORT = probe.getsockname()[1]
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


def test_a_second_start_keeps_the_password(settings: Settings) -> None:
    password = printed_password(prepare())
    settings.ADMIN_PASSWORD = "another"
    assert "changepassword admin" in prepare()
    assert User.objects.get(username="admin").check_password(password)


def test_the_address_is_printed(free_port: int) -> None:
    assert f"http://127.0.0.1:{free_port}/" in prepare()


def test_a_port_that_is_taken_is_refused_before_anything_else(free_port: int) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", free_port))
        other.listen()
        with pytest.raises(CommandError, match=f"PORT: 127.0.0.1:{free_port} cannot be served"):
            prepare()
    assert not User.objects.exists()


def test_a_port_that_cannot_be_is_refused(settings: Settings) -> None:
    settings.PORT = 70000
    with pytest.raises(CommandError, match="PORT: must be a number from 1 to 65535"):
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
