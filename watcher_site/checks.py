"""System checks: what the settings name is there, and is what it should be, before anything is started."""

from inspect import isabstract, isclass
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.utils.module_loading import import_string

from watcher_site.apps import SiteApp


@register()
def check_plugins(**_: Any) -> list[CheckMessage]:
    own = [config for config in apps.get_app_configs() if isinstance(config, SiteApp)]
    expected = [item for config in own for item in config.contracts.items()]
    return [problem for setting, contract in expected for problem in check_setting(setting, contract)]


def check_setting(setting: str, contract: str) -> list[CheckMessage]:
    """Report what is wrong with the plug-in that a setting names, or with those of a table."""
    named = getattr(settings, setting)
    if isinstance(named, str):
        return check_path(setting, named, contract)
    return [problem for path in named for problem in check_path(setting, path, contract)] or check_names(
        setting, named
    )


def check_path(setting: str, path: str, contract: str) -> list[CheckMessage]:
    """Report a plug-in that cannot be loaded, whatever its module raises, or that does not keep its contract."""
    try:
        plugin = import_string(path)
    except Exception as problem:
        return [Error(f"{setting}: {path} cannot be loaded: {problem}", id="watcher_site.E001")]
    if not (isclass(plugin) and issubclass(plugin, import_string(contract))):
        return [Error(f"{setting}: {path} is not a {contract}.", id="watcher_site.E002")]
    if isabstract(plugin):
        missing = ", ".join(sorted(getattr(plugin, "__abstractmethods__", ())))
        return [Error(f"{setting}: {path} lacks {missing}.", id="watcher_site.E003")]
    return []


def check_names(setting: str, paths: list[str]) -> list[CheckMessage]:
    """Report plug-ins of a table without a name, or with the name of another."""
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
