"""The functions of the site that one nop enters in an applier: ``python -m tests.benchmarks.call_path``.

A warm applier with one worker thread runs a plan of one nop, from the claim of the plan to its end. Exits with 1 if a
limit is exceeded. With ``--list`` the functions are listed by file.
"""

import os
import sys
import threading
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import django
from django.core.management import call_command

from tests.benchmarks.__main__ import environment
from tests.benchmarks.database import own_database

ROOT = Path(__file__).parents[2]
APPS = ("actions", "audits", "cluster", "plans", "watcher_site")
FUNCTIONS, FILES = 140, 28
# The size of the plan that warms the applier.
WARMING = 20
# Comprehensions have frames of their own in Python 3.11.
NOT_FUNCTIONS = {"<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}


class CallRecorder:
    """Records the functions of the site that any thread enters, while it is on."""

    def __init__(self) -> None:
        self.is_on = False
        self.codes: set[CodeType] = set()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if self.is_on and event == "call":
            self.codes.add(frame.f_code)

    def functions(self) -> dict[str, list[str]]:
        """Return the names of the functions by file."""
        found: dict[str, list[str]] = defaultdict(list)
        for code in self.codes:
            path = Path(code.co_filename)
            is_ours = path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in APPS
            if is_ours and code.co_name not in NOT_FUNCTIONS:
                found[str(path.relative_to(ROOT))].append(code.co_qualname)
        return {path: sorted(names) for path, names in sorted(found.items())}


def record() -> dict[str, list[str]]:
    """Run a plan of nops and then a plan of one nop, and return the functions that the second plan enters."""
    applier, executors, benchmark, proposals = (
        import_module(name)
        for name in (
            "plans.applier.applier",
            "plans.executors",
            "tests.benchmarks.applier",
            "plans.planning.proposals",
        )
    )
    recorder = CallRecorder()
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    process = applier.Applier(executors.ThreadExecutor(1))
    try:
        for size in (WARMING, 1):
            plan = proposals.propose(benchmark.independent(size))
            plan.launch()
            process.look_soon()
            recorder.is_on = size == 1
            run_to_end(process)
            recorder.is_on = False
            benchmark.verify(plan, size)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        process.stop()
        process.executor.stop()
    return recorder.functions()


def run_to_end(applier: Any) -> None:
    applier.advance()
    while not applier.is_idle:
        applier.rest()
        applier.advance()


def run(is_listed: bool) -> int:
    with own_database() as database:
        os.environ.update(environment(database) | {"WATCHER_LOG_LEVEL": "ERROR"})
        django.setup()
        call_command("migrate", verbosity=0)
        functions = record()
    number = sum(map(len, functions.values()))
    if is_listed:
        for path, names in functions.items():
            print(f"{path}: {', '.join(names)}")  # noqa: T201
    print(f"{number} functions (at most {FUNCTIONS}) in {len(functions)} files (at most {FILES})")  # noqa: T201
    return 0 if number <= FUNCTIONS and len(functions) <= FILES else 1


if __name__ == "__main__":
    sys.exit(run("--list" in sys.argv[1:]))
