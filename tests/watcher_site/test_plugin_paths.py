"""The settings accept the former module paths of plug-ins."""

import pytest
from django.conf import settings
from django.utils.module_loading import import_string

from watcher_site.configuration.plugin_paths import FORMER, current_path, read_plugins

PLUGINS = [*settings.ACTION_TYPES, *settings.STRATEGIES, *settings.POLICY_TYPES, *settings.SCORING_ENGINES]


@pytest.mark.parametrize("module", FORMER)
def test_former_path_loads_the_current_plug_in(module: str) -> None:
    [name] = [path.rpartition(".")[2] for path in PLUGINS if path.rpartition(".")[0] == FORMER[module]]
    assert import_string(current_path(f"{module}.{name}")).__name__ == name


def test_path_of_a_third_party_is_unchanged() -> None:
    assert current_path("example.restart.Restart") == "example.restart.Restart"


def test_setting_accepts_former_paths(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_documented_paths_can_be_imported(path: str) -> None:
    assert import_string(path).__name__ == path.rpartition(".")[2]
