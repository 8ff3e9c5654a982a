"""Run commands in the process of the tests, with the output and the exit status that a shell sees."""

from collections.abc import Callable
from typing import NamedTuple

import orjson
import pytest
from django.contrib.auth.models import User
from django.db import connections

from tests.api import Caller
from watcher_site.api.versions import MAXIMUM, format_version
from watcher_site.processes.command_line import run_command


class Ended(NamedTuple):
    status: int
    output: str
    errors: str

    @property
    def json(self) -> object:
        return orjson.loads(self.output)


Run = Callable[..., Ended]


@pytest.fixture
def run(db: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run ``manage.py`` with these arguments."""
    # A command closes its connections at its end. That of a test is in a transaction.
    monkeypatch.setattr(type(connections), "close_all", lambda _: None)

    def run(*arguments: object) -> Ended:
        capsys.readouterr()
        try:
            status = run_command(["manage.py", *map(str, arguments)])
        except SystemExit as end:
            status = int(end.code or 0)
        return Ended(status, *capsys.readouterr())

    return run


def newest(user: User) -> Caller:
    """Return a caller of the API in its newest microversion."""
    return Caller(user, format_version(MAXIMUM))
