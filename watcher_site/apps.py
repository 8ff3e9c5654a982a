from collections.abc import Mapping
from typing import ClassVar

from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate


class SiteApp(AppConfig):
    """An app of this site: the ready groups get rights on its models, and the plug-ins that it takes are checked.

    ``contracts`` gives for each setting that names its plug-ins the dotted path of the class that they derive from.
    """

    # Of the classes in an app's module Django takes the one that is a default: this one never is.
    default = False
    contracts: ClassVar[Mapping[str, str]] = {}


class WatcherSiteConfig(SiteApp):
    default = True
    name = "watcher_site"

    def ready(self) -> None:
        from watcher_site import checks  # noqa: F401 (registers them)
        from watcher_site.accounts.tokens import connect_token_signals
        from watcher_site.accounts.users import grant_permissions
        from watcher_site.database.connections import prepare_connection
        from watcher_site.history import logins

        logins.connect_login_signals()
        connect_token_signals()
        post_migrate.connect(grant_permissions, dispatch_uid="watcher_site.accounts.users")
        connection_created.connect(prepare_connection, dispatch_uid="watcher_site.database.connections")
