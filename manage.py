#!/usr/bin/env python
"""Run a management command of Watcher Site."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "watcher_site.settings")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as problem:
        sys.stderr.write(f"{problem}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
