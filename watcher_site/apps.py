from django.apps import AppConfig


class WatcherSiteConfig(AppConfig):
    name = "watcher_site"
