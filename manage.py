#!/usr/bin/env python
# PYTHON_ARGCOMPLETE_OK
"""Run a management command of Watcher Site."""

import sys

try:
    from watcher_site.processes.command_line import main
except ModuleNotFoundError as problem:
    if problem.name != "django":
        raise
    sys.stderr.write('This Python has no Django. Run "make run" once, and then ".venv/bin/python manage.py".\n')
    sys.exit(2)

if __name__ == "__main__":
    sys.exit(main())
