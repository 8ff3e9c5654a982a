"""System checks of the settings of metrics and data sources."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from cluster.checks import check_datasource, check_series
from tests.watcher_site.site_process import run

BEHIND_KEYSTONE = ["cluster.datasources.aetos.Aetos", "cluster.datasources.gnocchi.Gnocchi"]


@pytest.mark.parametrize("name", ["PROMETHEUS_METRICS", "GNOCCHI_METRICS"])
def test_series_of_an_unknown_metric_is_reported(settings: Settings, name: str) -> None:
    setattr(settings, name, {"instance_cpu_usage": "cpu", "instance_cpu_util": "cpu"})
    [problem] = check_series()
    assert str(problem.msg).startswith(f"WATCHER_{name}: instance_cpu_util is not a metric; there are host_cpu_usage,")


@pytest.mark.parametrize("source", BEHIND_KEYSTONE)
@pytest.mark.parametrize(
    ("cloud", "reason"),
    [("nowhere", "Cloud nowhere was not found"), ("incomplete", "Auth plugin requires parameters")],
)
def test_unconfigured_cloud_of_the_data_source_is_refused(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str, cloud: str, reason: str
) -> None:
    (tmp_path / "clouds.yaml").write_text("clouds: {incomplete: {auth: {username: watcher}}}")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    settings.DATASOURCE, settings.OPENSTACK_CLOUD = source, cloud
    with pytest.raises(ImproperlyConfigured, match=rf"^WATCHER_DATASOURCE: \w+ needs a cloud\. .*{reason}"):
        check_datasource()


def test_unconfigured_cloud_of_the_data_source_ends_the_command_with_status_2() -> None:
    ended = run("manage.py", "check", WATCHER_DATASOURCE=BEHIND_KEYSTONE[0], OS_CLOUD="nowhere")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith("WATCHER_DATASOURCE: aetos needs a cloud. OS_CLOUD and clouds.yaml do not define a")


def test_data_source_without_a_cloud_needs_no_configuration() -> None:
    assert check_datasource() == []


def test_data_source_that_cannot_be_loaded_is_left_to_the_plugin_check(settings: Settings) -> None:
    settings.DATASOURCE = "cluster.datasources.nowhere.Nowhere"
    assert check_datasource() == []
