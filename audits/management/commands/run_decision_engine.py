"""``manage.py run_decision_engine``: run a decision engine."""

from typing import Any

from django.core.management.base import CommandParser

from audits.engine.engine import DecisionEngine
from watcher_site.monitoring.server import serve_metrics
from watcher_site.monitoring.tracing import tracing
from watcher_site.processes import commands
from watcher_site.processes.main_loop import main_loop


class Command(commands.Command):
    help = "Run audits, which propose action plans, until SIGTERM or SIGINT. A running audit is finished first."
    acts_for_person = False
    requires_migrations_checks = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--once", action="store_true", help="run all audits that wait or have lost their engine, then exit"
        )

    def handle(self, *args: Any, once: bool, **options: Any) -> None:
        serve_metrics(DecisionEngine.kind, main_loop.find_problem)
        tracing.start(DecisionEngine.kind)
        engine = DecisionEngine()
        engine.stop_on_signals()
        engine.run(once=once)
