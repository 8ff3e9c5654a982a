"""Run the tests of a package and write the outcome of each as JSON: ``run_tests.py PACKAGE FILE``.

It runs in the environment of the suites, which does not contain the packages of the site.
"""

import json
import sys
import unittest
from importlib import import_module
from pathlib import Path
from typing import Any

# A test has succeeded unless a failure or a skip is recorded.
SUCCESS, FAILURE, SKIP = "success", "failure", "skip"


class Outcomes(unittest.TextTestResult):
    """Collects the outcome of each test by its id; a failed fixture of a class has a separate id."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.by_test: dict[str, str] = {}

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802 (the name in the base class)
        super().startTest(test)
        self.by_test.setdefault(test.id(), SUCCESS)

    def addError(self, test: unittest.TestCase, *arguments: Any, **options: Any) -> None:  # noqa: N802
        super().addError(test, *arguments, **options)
        self.by_test[test.id()] = FAILURE

    def addFailure(self, test: unittest.TestCase, *arguments: Any, **options: Any) -> None:  # noqa: N802
        super().addFailure(test, *arguments, **options)
        self.by_test[test.id()] = FAILURE

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.by_test[test.id()] = FAILURE

    def addSkip(self, test: unittest.TestCase, *arguments: Any, **options: Any) -> None:  # noqa: N802
        super().addSkip(test, *arguments, **options)
        self.by_test[test.id()] = SKIP


def load(package: str) -> unittest.TestSuite:
    """Return the tests of a package, in the order of their names."""
    folder = Path(str(import_module(package).__file__)).parent
    top = folder.parents[package.count(".")]
    return unittest.TestLoader().discover(str(folder), top_level_dir=str(top))


def main(package: str, file: str) -> int:
    runner = unittest.TextTestRunner(resultclass=Outcomes, verbosity=2)
    result = runner.run(load(package))
    Path(file).write_text(json.dumps(result.by_test))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
