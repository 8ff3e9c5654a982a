"""System checks: what the settings name is there, and is what it should be, before anything is started."""

from inspect import isabstract, isclass
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.utils.module_loading import import_string

# Each table of plug-ins, or single plug-in, with the contract that it keeps: the apps above this one own them.
CONTRACTS = {
    "ACTION_TYPES": "actions.types.base.ActionType",
    "STRATEGIES": "audits.strategies.base.Strategy",
    "SCORING_ENGINES": "audits.scoring.base.ScoringEngine",
    "DATASOURCE": "cluster.datasources.base.Datasource",
    "CLOUD": "cluster.drivers.base.Cloud",
}
TABLES = ("ACTION_TYPES", "STRATEGIES", "SCORING_ENGINES")


@register()
def check_plugins(**_: Any) -> list[CheckMessage]:
    return [problem for setting in CONTRACTS for problem in check_setting(setting)]


def check_setting(setting: str) -> list[CheckMessage]:
    named = getattr(settings, setting)
    paths = [named] if isinstance(named, str) else named
    problems = [problem for path in paths for problem in check_path(setting, path)]
    return problems or check_names(setting, paths)


def check_path(setting: str, path: str) -> list[CheckMessage]:
    """Report a plug-in that cannot be loaded, whatever its module raises, or that does not keep its contract."""
    try:
        plugin = import_string(path)
    except Exception as problem:
        return [Error(f"{setting}: {path} cannot be loaded: {problem}", id="watcher_site.E001")]
    contract = import_string(CONTRACTS[setting])
    if not (isclass(plugin) and issubclass(plugin, contract)):
        return [Error(f"{setting}: {path} is not a {CONTRACTS[setting]}.", id="watcher_site.E002")]
    if isabstract(plugin):
        missing = ", ".join(sorted(getattr(plugin, "__abstractmethods__", ())))
        return [Error(f"{setting}: {path} lacks {missing}.", id="watcher_site.E003")]
    return []


def check_names(setting: str, paths: list[str]) -> list[CheckMessage]:
    """Report plug-ins of a table without a name, or with the name of another."""
    if setting not in TABLES:
        return []
    names = [getattr(import_string(path), "name", "") for path in paths]
    problems: list[CheckMessage] = []
    for path, name in zip(paths, names, strict=True):
        if not (isinstance(name, str) and name):
            problems.append(Error(f"{setting}: {path} has no name.", id="watcher_site.E004"))
        elif names.count(name) > 1:
            problems.append(Error(f"{setting}: {path} shares the name {name} with another.", id="watcher_site.E005"))
    return problems


@register()
def check_lease(**_: Any) -> list[CheckMessage]:
    if settings.POLL_INTERVAL < settings.SERVICE_DOWN_TIME:
        return []
    hint = "Set WATCHER_POLL_INTERVAL to a fraction of WATCHER_SERVICE_DOWN_TIME."
    return [Warning("A service looks at its work less often than its lease lasts.", hint, id="watcher_site.W001")]
