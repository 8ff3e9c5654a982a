from collections.abc import Mapping
from typing import ClassVar

from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate


class SiteApp(AppConfig):
    """An app of this site, whose models get permissions for the predefined groups and whose plug-ins are checked.

    ``contracts`` maps each setting of plug-ins to the dotted path of their base class.
    """

    # Django uses the default AppConfig of a module, which must not be this base class.
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
