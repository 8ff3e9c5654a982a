"""The functions of the site on the way of one nop and of two requests: ``python -m tests.benchmarks.call_path``.

A warm applier with one worker thread runs a plan of one nop, from the claim of the plan to its end. Then it runs a
larger plan, of which a few nops in the middle are recorded. The requests, which have a token, read one action and skip
it, after others of the same kind. Exits with 1 if a limit is exceeded. With ``--list`` the functions are listed by
file.
"""

import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import django
from django.core.management import call_command
from django.test import Client

from tests.benchmarks.__main__ import environment
from tests.benchmarks.database import own_database

ROOT = Path(__file__).parents[2]
APPS = ("actions", "audits", "cluster", "plans", "watcher_site")
# The limits of functions and files.
LIMITS = {
    "a plan of one nop": (186, 33),
    "one more nop": (115, 23),
    "a read of one action": (50, 20),
    "a skip of one action": (92, 31),
}
# The size of the larger plan, and the steps of the applier that are recorded.
SIZE = 100
ALL, MIDDLE, NONE = range(SIZE), range(10, 20), range(0)
# The requests that are not recorded: the first ones compose queries and fill caches.
WARM_UP = 5
JSON = "application/json"
# Comprehensions have frames of their own in Python 3.11.
NOT_FUNCTIONS = {"<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}


class CallRecorder:
    """Records the functions of the site that any thread enters while it is active."""

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


Functions = dict[str, list[str]]


def record_nops() -> tuple[Functions, Functions]:
    """Return the functions that a whole plan of one nop enters, and those of one more nop of a running plan."""
    applier, executors = import_module("plans.applier.applier"), import_module("plans.executors")
    whole, more = CallRecorder(), CallRecorder()

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        whole(frame, event, argument)
        more(frame, event, argument)

    threading.setprofile(profile)
    sys.setprofile(profile)
    process = applier.Applier(executors.ThreadExecutor(1))
    try:
        run_plan(process, SIZE, whole, NONE)
        run_plan(process, 1, whole, ALL)
        run_plan(process, SIZE, more, MIDDLE)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        process.stop()
        process.executor.stop()
    return whole.functions(), more.functions()


def run_plan(process: Any, size: int, recorder: CallRecorder, steps: range) -> None:
    """Run a plan of the given number of nops to its end, and record the given steps of the applier."""
    benchmark, proposals = import_module("tests.benchmarks.applier"), import_module("plans.planning.proposals")
    plan = proposals.propose(benchmark.independent(size))
    plan.launch()
    process.poll_soon()
    # The periodic reading of the subscriptions is not a part of any action, nor is that of the plans.
    import_module("watcher_site.outbox.writing").listeners.read_at = time.monotonic() + 60
    recorder.is_on = 0 in steps
    process.advance()
    process.next_poll = time.monotonic() + 60
    step = 1
    while process.runs:
        recorder.is_on = step in steps
        process.rest()
        process.advance()
        step += 1
    recorder.is_on = False
    benchmark.verify(plan, size)


def record_requests() -> tuple[Functions, Functions]:
    """Return the functions that a read and a skip of one action enter."""
    benchmark, proposals = import_module("tests.benchmarks.applier"), import_module("plans.planning.proposals")
    rows, client = import_module("tests.benchmarks.rows"), import_module("tests.benchmarks.web.client")
    patch = import_module("tests.benchmarks.web.requests").SKIP
    plan = proposals.propose(benchmark.independent(WARM_UP + 1))
    paths = [f"/v1/actions/{uuid}" for uuid in plan.actions.values_list("uuid", flat=True)]
    site = Client(headers=client.with_token(rows.person()), SERVER_NAME="127.0.0.1")
    return record_last(site.get, paths), record_last(partial(site.patch, data=patch, content_type=JSON), paths)


def record_last(request: Callable[[str], Any], paths: list[str]) -> Functions:
    """Return the functions that the last of the requests to the paths enters."""
    recorder = CallRecorder()
    for path in paths:
        recorder.is_on = path == paths[-1]
        sys.setprofile(recorder)
        response = request(path)
        sys.setprofile(None)
        if response.status_code != HTTPStatus.OK:
            raise RuntimeError(f"{path}: {response.status_code} {response.content.decode()}")
    return recorder.functions()


def run(is_listed: bool) -> int:
    with own_database() as database:
        os.environ.update(environment(database) | {"WATCHER_LOG_LEVEL": "ERROR"})
        django.setup()
        call_command("migrate", verbosity=0)
        measured = (*record_nops(), *record_requests())
    is_met = True
    for (name, limits), functions in zip(LIMITS.items(), measured, strict=True):
        numbers = sum(map(len, functions.values())), len(functions)
        is_met = is_met and numbers[0] <= limits[0] and numbers[1] <= limits[1]
        print("{}: {} functions in {} files (at most {} in {})".format(name, *numbers, *limits))  # noqa: T201
        for path, names in functions.items() if is_listed else ():
            print(f"  {path}: {', '.join(names)}")  # noqa: T201
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(run("--list" in sys.argv[1:]))
