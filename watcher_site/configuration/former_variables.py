"""Environment variables that earlier versions read, and the values that are now fixed."""

from watcher_site.configuration.environment import env

FORMER_VARIABLES = {
    "WATCHER_CREDENTIAL_MEMORY_SECONDS": "a verified HTTP Basic credential is remembered for 60 seconds",
    "WATCHER_WEBHOOK_PAUSE": "the first pause before a notification is sent again is 5 seconds",
    "WATCHER_WEBHOOK_LONGEST_PAUSE": "the longest pause before a notification is sent again is an hour",
    "WATCHER_RELAY_CONNECTIONS": "a relay sends 4 notifications to a webhook at once",
    "WATCHER_DATASOURCE_WAIT": "a request to a data source is repeated after 1 second",
    "WATCHER_OPENSTACK_WAIT": "a request to OpenStack is repeated after 1 second, then after twice as long each time",
}


def find_former_variables() -> dict[str, str]:
    """Return the former variables that are set, with what holds instead of each."""
    return {name: value for name, value in FORMER_VARIABLES.items() if is_set(name)}


def is_set(name: str) -> bool:
    try:
        return env.str(name, None) is not None
    except ValueError:  # It names a file that cannot be read.
        return True
