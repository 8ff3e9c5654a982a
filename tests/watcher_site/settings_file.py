"""Reads the settings again in a test, with the environment of the test."""

from runpy import run_path
from typing import Any

import structlog
from django.conf import settings


def read_settings() -> dict[str, Any]:
    """Return the values of all settings, and keep the configuration of the logs, which loggers already use."""
    configuration = structlog.get_config()
    try:
        return run_path(str(settings.BASE_DIR / "watcher_site" / "settings.py"))
    finally:
        structlog.configure(**configuration)
