"""System checks of the settings, such as the classes of plug-ins, before a process starts."""

from inspect import isabstract, isclass
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_permission_codename
from django.core.checks import CheckMessage, Error, Warning, register
from django.utils.module_loading import import_string

from watcher_site.apps import SiteApp
from watcher_site.configuration.environment import env
from watcher_site.configuration.policy_file import PolicyFault, find_ineffective, load_rules


@register()
def check_plugins(**_: Any) -> list[CheckMessage]:
    own = [config for config in apps.get_app_configs() if isinstance(config, SiteApp)]
    expected = [item for config in own for item in config.contracts.items()]
    return [problem for setting, contract in expected for problem in check_setting(setting, contract)]


def check_setting(setting: str, contract: str) -> list[CheckMessage]:
    """Report the errors of the plug-in, or the table of plug-ins, in a setting."""
    named, variable = getattr(settings, setting), f"WATCHER_{setting}"
    if isinstance(named, str):
        return check_plugin_path(variable, named, contract)
    return [problem for path in named for problem in check_plugin_path(variable, path, contract)] or check_names(
        variable, named
    )


def check_plugin_path(variable: str, path: str, contract: str) -> list[CheckMessage]:
    """Report a plug-in that cannot be loaded, for any exception of its module, or does not implement its contract."""
    try:
        plugin = import_string(path)
    except Exception as problem:
        return [Error(f"{variable}: {path} cannot be loaded: {problem}", id="watcher_site.E001")]
    if not (isclass(plugin) and issubclass(plugin, import_string(contract))):
        return [Error(f"{variable}: {path} is not a {contract}.", id="watcher_site.E002")]
    if isabstract(plugin):
        missing = ", ".join(sorted(getattr(plugin, "__abstractmethods__", ())))
        return [Error(f"{variable}: {path} lacks {missing}.", id="watcher_site.E003")]
    return []


def check_names(variable: str, paths: list[str]) -> list[CheckMessage]:
    """Report plug-ins of a table without a name, or with the same name."""
    names = [getattr(import_string(path), "name", "") for path in paths]
    problems: list[CheckMessage] = []
    for path, name in zip(paths, names, strict=True):
        if not (isinstance(name, str) and name):
            problems.append(Error(f"{variable}: {path} has no name.", id="watcher_site.E004"))
        elif names.count(name) > 1:
            problems.append(Error(f"{variable}: {path} shares the name {name} with another.", id="watcher_site.E005"))
    return problems


@register()
def check_lease(**_: Any) -> list[CheckMessage]:
    if settings.POLL_INTERVAL < settings.SERVICE_DOWN_TIME:
        return []
    hint = "Set WATCHER_POLL_INTERVAL to a fraction of WATCHER_SERVICE_DOWN_TIME."
    return [Warning("The poll interval is not shorter than the lease of services.", hint, id="watcher_site.W001")]


@register()
def check_plan_approval(**_: Any) -> list[CheckMessage]:
    if not (settings.PLAN_APPROVAL and settings.MAKE_ROOM_AUTO_TRIGGER):
        return []
    hint = "Set WATCHER_MAKE_ROOM_AUTO_TRIGGER to false to review these plans, and auto_trigger of an existing audit."
    return [Warning("Plans that make capacity for servers start without an approval.", hint, id="watcher_site.W004")]


@register()
def check_former_variables(**_: Any) -> list[CheckMessage]:
    """Warn of variables that are set but no longer read."""
    return [
        Warning(f"{name} is set, but no longer read: {value}.", f"Remove {name}.", id="watcher_site.W002")
        for name, value in find_former_variables().items()
    ]


@register()
def check_policy_file(**_: Any) -> list[CheckMessage]:
    """Warn of rules of the policy file without effect, such as those with misspelt names."""
    if not settings.POLICY_FILE:
        return []
    # The command imports the views of the API, which import this app.
    from watcher_site.management.commands.generate_policy import known_policies

    try:
        rules = load_rules(settings.POLICY_FILE)
    except PolicyFault:  # The error appeared after the settings were read: it is in the log and in /readyz.
        return []
    return [
        Warning(f"WATCHER_POLICY_FILE: {problem}", id="watcher_site.W003")
        for problem in find_ineffective(rules, known_policies(), all_permissions())
    ]


def all_permissions() -> set[str]:
    """Return the permissions of all models, such as plans.start_actionplan."""
    permissions = set()
    for model in apps.get_models():
        options = model._meta
        codenames = [get_permission_codename(verb, options) for verb in options.default_permissions]
        codenames += [codename for codename, _ in options.permissions]
        permissions |= {f"{options.app_label}.{codename}" for codename in codenames}
    return permissions


FORMER_VARIABLES = {
    "WATCHER_CREDENTIAL_MEMORY_SECONDS": "a verified HTTP Basic credential is remembered for 60 seconds",
    "WATCHER_WEBHOOK_PAUSE": "the first pause before a notification is sent again is 5 seconds",
    "WATCHER_WEBHOOK_LONGEST_PAUSE": "the longest pause before a notification is sent again is an hour",
    "WATCHER_RELAY_CONNECTIONS": "a relay sends 4 notifications to a webhook at once",
    "WATCHER_DATASOURCE_WAIT": "a request to a data source is repeated after 1 second",
    "WATCHER_OPENSTACK_WAIT": "a request to OpenStack is repeated after 1 second, then after twice as long each time",
}


def find_former_variables() -> dict[str, str]:
    """Return the former variables that are set, each with its replacement."""
    return {name: value for name, value in FORMER_VARIABLES.items() if is_set(name)}


def is_set(name: str) -> bool:
    try:
        return env.str(name, None) is not None
    except ValueError:  # It names a file that cannot be read.
        return True
