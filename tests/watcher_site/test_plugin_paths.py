"""The former names of the modules of plug-ins go on working in settings."""

import pytest
from django.conf import settings
from django.utils.module_loading import import_string

from watcher_site.configuration.plugin_paths import FORMER, current_path, read_plugins

PLUGINS = [*settings.ACTION_TYPES, *settings.STRATEGIES, *settings.POLICY_TYPES, *settings.SCORING_ENGINES]


@pytest.mark.parametrize("module", FORMER)
def test_a_former_name_leads_to_a_plugin_of_the_site(module: str) -> None:
    [name] = [path.rpartition(".")[2] for path in PLUGINS if path.rpartition(".")[0] == FORMER[module]]
    assert import_string(current_path(f"{module}.{name}")).__name__ == name


def test_the_path_of_a_third_party_stays() -> None:
    assert current_path("example.restart.Restart") == "example.restart.Restart"


def test_a_setting_may_have_former_names(monkeypatch: pytest.MonkeyPatch) -> None:
    former, current = next(iter(FORMER.items()))
    monkeypatch.setenv("WATCHER_ACTION_TYPES", f"{former}.Name,example.restart.Restart")
    assert read_plugins("WATCHER_ACTION_TYPES", []) == [f"{current}.Name", "example.restart.Restart"]


@pytest.mark.parametrize(
    "path",
    [
        "cluster.drivers.embedded.EmbeddedCloud",
        "cluster.drivers.openstack.OpenStackCloud",
        "cluster.datasources.stored.StoredSamples",
        "cluster.datasources.prometheus.Prometheus",
        "cluster.datasources.aetos.Aetos",
        "cluster.datasources.gnocchi.Gnocchi",
        "cluster.snapshot.ClusterSnapshot",
        "audits.strategies.placement.Placement",
        "actions.locking.take_locks",
        "actions.proposals.ProposedAction",
    ],
)
def test_documented_names_stay(path: str) -> None:
    assert import_string(path).__name__ == path.rpartition(".")[2]
