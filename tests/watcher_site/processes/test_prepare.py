"""`prepare` sets up the site for the first start, and changes nothing at later starts."""

import os
import signal
import socket
import subprocess
import sys
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


def test_printed_password_logs_in() -> None:
    password = printed_password(prepare())
    assert User.objects.get(username="admin", is_superuser=True).check_password(password)


def test_every_first_start_has_a_different_password() -> None:
    first = printed_password(prepare())
    User.objects.all().delete()
    assert printed_password(prepare()) != first


def test_configured_password_is_used_and_not_printed(settings: Settings) -> None:
    settings.ADMIN_PASSWORD = "chosen by the operator"
    assert settings.ADMIN_PASSWORD not in prepare()
    assert User.objects.get(username="admin").check_password("chosen by the operator")


def test_second_start_keeps_the_password_and_ignores_the_configured_one(settings: Settings) -> None:
    password = printed_password(prepare())
    settings.ADMIN_PASSWORD = "another that is long enough"
    assert "WATCHER_ADMIN_PASSWORD is ignored" in prepare()
    assert User.objects.get(username="admin").check_password(password)


@pytest.mark.parametrize(
    ("password", "rule"), [("x", "too short"), ("password1", "too common"), ("8241973", "numeric")]
)
def test_configured_password_that_breaks_a_rule_is_refused(settings: Settings, password: str, rule: str) -> None:
    settings.ADMIN_PASSWORD = password
    with pytest.raises(CommandError, match=f"WATCHER_ADMIN_PASSWORD: .*{rule}"):
        prepare()
    assert not User.objects.exists()


def test_address_is_printed(free_port: int) -> None:
    assert f"http://127.0.0.1:{free_port}/" in prepare()


def test_occupied_port_is_refused_before_any_change(free_port: int) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", free_port))
        other.listen()
        with pytest.raises(CommandError, match=f"PORT: 127.0.0.1:{free_port} cannot be served"):
            prepare()
    assert not User.objects.exists()


LISTEN = """
import os, socket, sys, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
os.fork() or time.sleep(60)
print("listening", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the processes that listen on a port")
def test_refusal_of_an_occupied_port_names_the_process_that_its_children_share_it_with(free_port: int) -> None:
    command = [sys.executable, "-c", LISTEN, str(free_port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as other:
        assert other.stdout
        assert other.stdout.readline() == b"listening\n"
        with pytest.raises(CommandError) as refused:
            prepare()
        os.killpg(other.pid, signal.SIGKILL)
    assert f"Address already in use by process {other.pid} ({sys.executable} -c" in str(refused.value)
    assert f"Stop it with kill {other.pid}, or choose another with PORT=…." in str(refused.value)


def test_invalid_bind_address_is_refused(settings: Settings) -> None:
    settings.BIND = "no such address"
    with pytest.raises(CommandError, match="WATCHER_BIND: no such address is not an address"):
        prepare()


def test_demonstration_is_loaded_once(settings: Settings) -> None:
    settings.DEMO = True
    prepare()
    loaded = ComputeNode.objects.count()
    prepare()
    assert 0 < loaded == ComputeNode.objects.count()


def test_deleted_demonstration_is_not_loaded_again(settings: Settings) -> None:
    settings.DEMO = True
    prepare()
    ComputeNode.objects.soft_delete()
    prepare()
    assert not ComputeNode.objects.present().exists()


def test_cloud_is_empty_without_the_demonstration() -> None:
    prepare()
    assert not ComputeNode.objects.exists()
