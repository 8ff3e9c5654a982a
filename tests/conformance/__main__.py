"""Run the test suites of Watcher's clients against the site: ``python -m tests.conformance``.

Each suite runs in a separate process, against a separate site with an empty database. Prints one line for each suite,
and exits with 1 if an outcome is unexpected. ``make conformance`` creates the environment of the suites first.
"""

import argparse
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.conformance import identity, site
from tests.conformance.suites import SUITES, Result, Suite, run
from tests.processes import ROOT

PYTHON = ROOT / ".conformance" / "bin" / "python"


def run_one(suite: Suite, folder: Path) -> int:
    """Run a suite and print its result; return 0 if every outcome was expected."""
    begin = time.monotonic()
    folder.mkdir(parents=True)
    with site.started(folder) as (url, account), identity.serving(account, url) as address:
        result = run(suite, PYTHON, address, account, folder)
    print(report(result, time.monotonic() - begin, folder), flush=True)  # noqa: T201
    return 1 if result.problems() else 0


def report(result: Result, seconds: float, folder: Path) -> str:
    """Return the summary of a suite and its exceptions, with the output of the suite if an outcome was unexpected."""
    problems = result.problems()
    log = [(folder / "tests.log").read_text(errors="replace")] if problems else []
    return "\n  ".join([*log, f"{result.line()} in {seconds:.0f} s", *result.exceptions(), *problems])


def run_several(suites: list[Suite], folder: Path) -> int:
    """Run suites concurrently; return 0 if every outcome of each suite was expected."""
    command = [sys.executable, "-m", "tests.conformance", "--folder"]
    with ExitStack() as stack:
        processes = []
        for suite in suites:
            process = subprocess.Popen([*command, folder / suite.key, suite.key], cwd=ROOT)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            processes.append(process)
        return max(abs(process.wait()) for process in processes) and 1


def read() -> argparse.Namespace:
    keys = [suite.key for suite in SUITES]
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"{', '.join(keys)}; all if none is named")
    parser.add_argument("--folder", type=Path, help="keeps the logs in this folder, which must not exist")
    arguments = parser.parse_args()
    if unknown := set(arguments.suites) - set(keys):
        parser.error(f"SUITE: there is no suite {min(unknown)}; there are {', '.join(keys)}.")
    return arguments


def main() -> int:
    arguments = read()
    if not PYTHON.exists():
        sys.exit(f"There is no environment with the suites at {PYTHON}: make conformance makes it.")
    # SIGTERM stops the started processes, as Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    chosen = [suite for suite in SUITES if not arguments.suites or suite.key in arguments.suites]
    with ExitStack() as stack:
        folder = arguments.folder or Path(stack.enter_context(TemporaryDirectory()), "conformance")
        try:
            return run_one(chosen[0], folder) if len(chosen) == 1 else run_several(chosen, folder)
        except site.NotStarted as problem:
            sys.exit(str(problem))


if __name__ == "__main__":
    sys.exit(main())
