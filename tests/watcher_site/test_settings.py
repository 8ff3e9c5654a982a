"""The site refuses to start with insecure or invalid settings, in one line that names the variable."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

import pytest
from django.core.exceptions import ImproperlyConfigured

from tests.processes import ROOT
from tests.watcher_site.settings_file import read_settings
from tests.watcher_site.site_process import KEY, run
from watcher_site.configuration.environment import (
    find_shared,
    is_transport_address,
    read_choice,
    read_database,
    read_email,
    read_policies,
)
from watcher_site.configuration.policies import DEFAULTS
from watcher_site.settings import stored_secret_key


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("rabbit://user:password@broker:5672/watcher?ssl=true", True),
        ("rabbit://user:pass@a:5672,user:pass@b.example.org,[::1]:5672/", True),
        ("rabbit://broker", True),
        ("rabbit://broker:many/watcher", False),
        ("rabbit://user:password@/watcher", False),
        ("rabbit://a,,b/", False),
        ("amqp://broker/", False),
    ],
)
def test_broker_url_requires_hosts_and_valid_ports(address: str, expected: bool) -> None:
    assert is_transport_address(address) is expected


def start(**variables: str) -> CompletedProcess[str]:
    """Read the settings in a new process, as every command does."""
    return run("manage.py", "diffsettings", **variables)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SECRET_KEY", "short"),
        ("SECRET_KEY", "a" * 60),
        ("SECRET_KEY", "django-insecure-" + KEY),
        ("ALLOWED_HOSTS", "*"),
        ("ALLOWED_HOSTS", " , "),
        ("DEBUG", "maybe"),
        ("WATCHER_HTTPS", "2"),
        ("WATCHER_TRUSTED_ORIGINS", "watcher.example.org"),
        ("WATCHER_TRUSTED_PROXIES", "10.0.0.1/8"),
        ("WATCHER_TRUSTED_PROXIES", "proxy.example.org"),
        ("DATABASE_URL", ""),
        ("DATABASE_URL", "nonsense"),
        ("DATABASE_URL", "mysql://watcher@localhost/watcher"),
        ("DATABASE_URL", "postgres://"),
        ("PORT", "eighty"),
        ("PORT", "80.5"),
        ("PORT", "70000"),
        ("WATCHER_DEMO", "maybe"),
        ("WATCHER_METRICS_PORTS", "9101"),
        ("WATCHER_METRICS_PORTS", "proxy=9101"),
        ("WATCHER_METRICS_PORTS", "applier=0"),
        ("WATCHER_METRICS_PORTS", "applier=70000"),
        ("WATCHER_METRICS_PORTS", "applier=9110-9101"),
        ("WATCHER_METRICS_PORTS", "applier=91o1"),
        ("WATCHER_METRICS_PORTS", "applier=9101,applier=9102"),
        ("WATCHER_METRICS_PORTS", "web=8000"),
        ("WATCHER_PLANNER_WEIGHTS", "nop=heavy"),
        ("DATABASE_URL", "sqlite:////no/such/folder/watcher.sqlite3"),
        ("DATABASE_URL", f"sqlite:///{ROOT}"),
        ("DATABASE_URL", f"sqlite:///{ROOT}/README.md"),
        ("WATCHER_MAX_LIMIT", "0"),
        ("WATCHER_POLL_INTERVAL", "nan"),
        ("WATCHER_SERVICE_DOWN_TIME", "-1"),
        ("WATCHER_EMBEDDED_CLOUD_FAILURE_RATE", "1.01"),
        ("WATCHER_PROMETHEUS_URL", "prometheus.example.org:9090"),
        ("WATCHER_PROMETHEUS_URL", "http://prometheus.example.org:metrics"),
        ("WATCHER_PROMETHEUS_CAFILE", "/no/such/file.pem"),
        ("WATCHER_KEYSTONE_URL", "keystone.example.org"),
        ("WATCHER_OIDC_SCOPES", "profile"),
        ("WATCHER_OIDC_ALGORITHM", "HS256"),
        ("WATCHER_PROMETHEUS_METRICS", "host_power"),
        ("WATCHER_GNOCCHI_METRICS", "host_power"),
        ("WATCHER_GNOCCHI_METRICS", "host_power=hardware.*"),
        ("WATCHER_GNOCCHI_POLLING_INTERVAL", "0"),
        ("WATCHER_POLICIES", "servers:show"),
        ("WATCHER_EXECUTOR", "processes"),
        ("WATCHER_CLOUD_NOTIFICATION_URL", "broker.example.org"),
        ("WATCHER_CLOUD_NOTIFICATION_URL", "kafka://broker.example.org"),
        ("WATCHER_CLOUD_NOTIFICATION_TOPICS", "notifications"),
        ("WATCHER_CLOUD_NOTIFICATION_POOL", "amq.reserved"),
        ("CELERY_BROKER_URL", "redis://localhost/1"),
        ("CELERY_BROKER_URL", "amqp://"),
        ("CELERY_BROKER_URL", "amqp://localhost:many"),
        ("WATCHER_CELERY_QUEUE", "amq.ours"),
        ("WATCHER_CELERY_QUEUES", "migrate"),
        ("WATCHER_CELERY_QUEUES", "zone:=az1"),
        ("WATCHER_CELERY_QUEUES", "migrate=two words"),
        ("WATCHER_LOG_FORMAT", "xml"),
        ("WATCHER_LOG_LEVEL", "loud"),
    ],
)
def test_insecure_or_invalid_value_is_refused_with_one_line(name: str, value: str) -> None:
    ended = start(**{name: value})
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"{name}: ")
    assert ended.stderr.count("\n") == 1


SETTINGS = ROOT / "watcher_site" / "settings.py"
# Without the variables that are read only under a condition.
NUMBERS = sorted(
    name
    for reader, name in re.findall(r"read_(number|whole)\(\s*\"(\w+)\"", SETTINGS.read_text())
    if name not in {"WATCHER_HSTS_SECONDS", "WATCHER_CONNECTION_AGE"}
)


@pytest.mark.parametrize(
    "name", ["WATCHER_CELERY_QUEUES", "WATCHER_PROMETHEUS_METRICS", "WATCHER_GNOCCHI_METRICS", "WATCHER_POLICIES"]
)
def test_table_without_an_equals_sign_is_refused_with_the_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "migrate")
    with pytest.raises(ImproperlyConfigured, match=f"^{name}: must name "):
        read_settings()


def test_host_name_with_an_underscore_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELERY_BROKER_URL", "amqp://watcher:secret@message_broker:5672//")
    assert read_settings()["CELERY_BROKER_URL"] == "amqp://watcher:secret@message_broker:5672//"


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", ["-2", "many"])
def test_invalid_or_negative_number_is_refused_with_its_range(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The variables of OpenTelemetry are read only with tracing.
    monkeypatch.setenv("WATCHER_TRACING", "true")
    monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match=rf"^{name}: must be a (whole )?number from (-1|[0-9.]+) to [0-9]+"):
        read_settings()


@pytest.mark.parametrize(("name", "value"), [("SECRET_KEY", "short"), ("PORT", "eighty"), ("WATCHER_DEMO", "maybe")])
@pytest.mark.parametrize(
    "arguments",
    [["-m", "gunicorn", "--config", "python:watcher_site.gunicorn"], ["-m", "watcher_site.processes.start"]],
)
def test_gunicorn_and_the_start_command_refuse_invalid_settings(arguments: list[str], name: str, value: str) -> None:
    ended = run(*arguments, **{name: value})
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith(f"{name}: ")


def test_unwritable_database_folder_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The function is called as another user: the superuser may write anywhere."""
    with TemporaryDirectory() as folder:
        monkeypatch.setenv("DATABASE_URL", f"sqlite:///{folder}/watcher.sqlite3")
        Path(folder).chmod(0o555)
        with as_nobody(), pytest.raises(ImproperlyConfigured, match=f"DATABASE_URL: {folder} is not writable"):
            read_database("DATABASE_URL", Path("unused"))


def test_error_for_an_optional_choice_mentions_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEVEL", "loud")
    with pytest.raises(ImproperlyConfigured, match="one of info, error, or nothing, and is loud"):
        read_choice("LEVEL", "info", ["info", "error", ""])


@contextmanager
def as_nobody() -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_password_of_a_refused_database_url_is_not_shown() -> None:
    assert "secret" not in start(DATABASE_URL="postgres://watcher:secret@localhost:port/watcher").stderr


def test_variable_is_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "port").write_text("8765\n")
    assert "PORT = 8765" in start(PORT_FILE=str(tmp_path / "port")).stdout


@pytest.mark.parametrize("name", ["SECRET_KEY", "PORT"])
def test_missing_file_of_a_variable_is_refused(tmp_path: Path, name: str) -> None:
    ended = start(**{f"{name}_FILE": str(tmp_path / "missing")})
    assert (ended.returncode, ended.stderr) == (
        2,
        f"{name}: The value of {name}_FILE must be a readable file path.\n",
    )


def test_stored_secret_key_that_is_not_utf_8_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("watcher_site.settings.DATA_DIR", tmp_path)
    (tmp_path / "secret-key").write_bytes(b"\xbe\xff\x00abc")
    with pytest.raises(ImproperlyConfigured, match=f"^SECRET_KEY: {tmp_path}/secret-key must contain text in UTF-8"):
        stored_secret_key()


def test_default_allowed_hosts_are_local() -> None:
    assert "ALLOWED_HOSTS = ['127.0.0.1', 'localhost']" in start().stdout


def test_debug_is_off_by_default() -> None:
    assert "\nDEBUG = True" not in start().stdout


def test_deployment_checks_of_django_pass() -> None:
    ended = run("manage.py", "check", "--deploy", "--fail-level", "WARNING", ALLOWED_HOSTS="watcher.example.org")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_password_of_a_refused_broker_url_is_not_shown() -> None:
    assert "secret" not in start(CELERY_BROKER_URL="redis://watcher:secret@localhost").stderr


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "rule:system_reader"),
        ("os-instance-actions:events:details=rule:project_reader", "rule:project_reader"),
        ("os_compute_api:os-instance-actions:events:details=rule:context_is_admin", "rule:admin"),
    ],
)
def test_policy_rule_is_read_in_novas_notations(monkeypatch: pytest.MonkeyPatch, text: str, rule: str) -> None:
    monkeypatch.setenv("WATCHER_POLICIES", text)
    assert read_policies("WATCHER_POLICIES", DEFAULTS) == {"os-instance-actions:events:details": rule}


@pytest.mark.parametrize("text", ["servers:show=rule:admin", "os-instance-actions:events:details=everybody"])
def test_unknown_policy_or_rule_is_refused_with_the_known_ones(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("WATCHER_POLICIES", text)
    with pytest.raises(ImproperlyConfigured, match="os-instance-actions:events:details, with one of rule:admin"):
        read_policies("WATCHER_POLICIES", DEFAULTS)


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("WATCHER_PLANNER_WEIGHTS", "restart=34", "[('migrate', 30), ('restart', 34)]"),
        ("WATCHER_PLANNER_PARALLELIZATION", "restart=5,migrate=1", "[('migrate', 1), ('restart', 5)]"),
    ],
)
def test_planner_table_extends_the_defaults(name: str, text: str, shown: str) -> None:
    setting = name.removeprefix("WATCHER_")
    code = (
        f"import watcher_site.settings as s; t = s.{setting}; print(sorted((k, t[k]) for k in ('migrate', 'restart')))"
    )
    assert run("-c", code, **{name: text}).stdout.strip() == shown


def test_action_types_with_the_same_weight_are_named() -> None:
    assert find_shared({"migrate": 30, "stop": 2, "restart": 30}) == "migrate and restart"
    assert find_shared({"migrate": 30}) == ""


@pytest.mark.parametrize(("query", "expected"), [("", 5), ("?connect_timeout=9", 9)], ids=["default", "url"])
def test_connect_timeout_has_a_default_that_the_url_can_change(
    query: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"postgres://watcher@db.example.org/watcher{query}")
    options = read_settings()["DATABASES"]["default"]["OPTIONS"]
    assert int(options["connect_timeout"]) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("submission://watcher:secret@mail.example.org", (587, True, False)),
        ("smtp://watcher:secret@mail.example.org?ssl=true", (465, False, True)),
        ("smtp://watcher:secret@mail.example.org:4650/?ssl=true", (4650, False, True)),
        ("smtp://watcher:secret@mail.example.org/?tls=true", (25, True, False)),
        ("smtp://mail.example.org", (25, False, False)),
    ],
)
def test_url_of_a_mail_server_determines_the_port_and_the_kind_of_tls(
    monkeypatch: pytest.MonkeyPatch, url: str, expected: tuple[int, bool, bool]
) -> None:
    monkeypatch.setenv("EMAIL_URL", url)
    email = read_email("EMAIL_URL")
    assert (email["EMAIL_PORT"], email["EMAIL_USE_TLS"], email["EMAIL_USE_SSL"]) == expected


def test_escaped_characters_of_the_mail_password_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMAIL_URL", "submission://watcher%40example.org:a%2Fb%23c%3A@mail.example.org")
    email = read_email("EMAIL_URL")
    assert (email["EMAIL_HOST_USER"], email["EMAIL_HOST_PASSWORD"]) == ("watcher@example.org", "a/b#c:")


@pytest.mark.parametrize(
    "url",
    [
        "imap://watcher:12secret@mail.example.org",
        "submission://watcher:12secret@",
        "submission://watcher:12secret@[mail",
        "submission://watcher:12secret@mail.example.org:70000",
        "submission://watcher:12secret@mail.example.org/?timeout=soon",
        # A character of the password that is not escaped ends the host.
        "submission://watcher:12#secret@mail.example.org",
        "submission://watcher:12/secret@mail.example.org",
        "submission://watcher:12?secret@mail.example.org",
        "submission://:12secret@mail.example.org",
        "submission://12secret@mail.example.org",
        # SMTP clients of Python send passwords in ASCII only.
        "submission://watcher:12secret%C3%A4@mail.example.org",
    ],
)
def test_invalid_url_of_a_mail_server_is_refused_without_its_password(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("EMAIL_URL", url)
    with pytest.raises(ImproperlyConfigured, match=r"^EMAIL_URL: must be submission://") as refusal:
        read_email("EMAIL_URL")
    assert "secret" not in str(refusal.value)
