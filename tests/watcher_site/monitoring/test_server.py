"""The HTTP server of a process for its metrics."""

from socket import create_connection

import pytest
from prometheus_client import CollectorRegistry

from tests.waiting import PATIENCE
from watcher_site.monitoring.ports import listen
from watcher_site.monitoring.server import RequestHandler, serve


def test_connection_of_a_silent_client_is_closed_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(RequestHandler, "timeout", 0.05)
    listener = listen(0, "127.0.0.1")
    serve(listener, CollectorRegistry())
    with create_connection(listener.getsockname(), PATIENCE) as client:
        assert (client.recv(1), capsys.readouterr().err) == (b"", "")
