#!/usr/bin/env python
"""Run a management command of Watcher Site."""

import os
import sys

from watcher_site.processes.command_line import run_command

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "watcher_site.settings")
    sys.exit(run_command(sys.argv))
