#!/usr/bin/env python
# PYTHON_ARGCOMPLETE_OK
"""Run a management command of Watcher Site."""

import sys

from watcher_site.processes.command_line import main

if __name__ == "__main__":
    sys.exit(main())
