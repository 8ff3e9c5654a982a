"""The site refuses to start with settings that are insecure or make no sense, in one line that names the variable."""

from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.watcher_site.site_process import KEY, run


def start(**variables: str) -> CompletedProcess[str]:
    """Read the settings in a process of its own, as every command does."""
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
        ("DATABASE_URL", ""),
        ("DATABASE_URL", "nonsense"),
        ("DATABASE_URL", "mysql://watcher@localhost/watcher"),
        ("DATABASE_URL", "postgres://"),
        ("PORT", "eighty"),
        ("PORT", "80.5"),
        ("WATCHER_MAX_LIMIT", "0"),
        ("WATCHER_POLL_INTERVAL", "nan"),
        ("WATCHER_SERVICE_DOWN_TIME", "-1"),
        ("WATCHER_EMBEDDED_CLOUD_FAILURE_RATE", "1.01"),
        ("WATCHER_PROMETHEUS_URL", "prometheus.example.org:9090"),
        ("WATCHER_PROMETHEUS_URL", "http://prometheus.example.org:metrics"),
        ("WATCHER_PROMETHEUS_CAFILE", "/no/such/file.pem"),
        ("WATCHER_LOG_FORMAT", "xml"),
        ("WATCHER_LOG_LEVEL", "loud"),
    ],
)
def test_what_is_insecure_or_makes_no_sense_is_refused_in_one_line(name: str, value: str) -> None:
    ended = start(**{name: value})
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"{name}: ")
    assert ended.stderr.count("\n") == 1


def test_a_refused_database_url_does_not_show_its_password() -> None:
    assert "secret" not in start(DATABASE_URL="postgres://watcher:secret@localhost:port/watcher").stderr


def test_a_variable_may_be_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "port").write_text("8765\n")
    assert "PORT = 8765" in start(PORT_FILE=str(tmp_path / "port")).stdout


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    ended = start(SECRET_KEY_FILE=str(tmp_path / "missing"))
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)


def test_without_settings_only_this_machine_is_answered() -> None:
    assert "ALLOWED_HOSTS = ['127.0.0.1', 'localhost']" in start().stdout


def test_debugging_is_off_unless_asked_for() -> None:
    assert "\nDEBUG = True" not in start().stdout


def test_djangos_own_checks_find_nothing_in_production() -> None:
    ended = run("manage.py", "check", "--deploy", "--fail-level", "WARNING", ALLOWED_HOSTS="watcher.example.org")
    assert (ended.returncode, ended.stderr) == (0, "")
