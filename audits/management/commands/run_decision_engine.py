"""``manage.py run_decision_engine``: answer the audits that people make."""

import signal
from typing import Any

from django.core.management.base import CommandParser

from audits.engine import DecisionEngine
from watcher_site import commands


class Command(commands.Command):
    help = "Answer audits with action plans, until SIGTERM or SIGINT; the audit that runs then is finished first."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--once", action="store_true", help="answer every audit that waits or lost its engine, then exit"
        )

    def handle(self, *args: Any, once: bool, **options: Any) -> None:
        engine = DecisionEngine()

        def request_stop(*_: Any) -> None:
            # A handler may interrupt anything: it only sets a flag.
            engine.stopping = True

        signal.signal(signal.SIGTERM, request_stop)
        signal.signal(signal.SIGINT, request_stop)
        engine.run(once=once)
