"""Plug-ins: classes named by dotted paths in a settings table, loaded on first use."""

from functools import cache
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed
from django.utils.module_loading import import_string


@cache
def load(setting: str) -> dict[str, type[Any]]:
    """Return the classes in a settings table by their ``name``, in the table's order.

    Raises:
        ImportError: a path is invalid. The system checks report this at start.
    """
    return {plugin.name: plugin for plugin in map(import_string, getattr(settings, setting))}


def clear_plugin_cache(**_: Any) -> None:
    load.cache_clear()


setting_changed.connect(clear_plugin_cache)
