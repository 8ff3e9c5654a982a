"""An applier and a worker in one process, with messages that the test delivers, without a broker or threads."""

from dataclasses import asdict
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from plans.applier.applier import Applier
from plans.workers import celery
from plans.workers.celery import CeleryExecutor
from plans.workers.messages import JobMessage, Reply
from plans.workers.process import WorkerProcess
from plans.workers.transport import BrokerThread
from watcher_site.processes.worker import Heartbeat


class WorkerHarness:
    """Undelivered messages, which a test delivers, loses or duplicates."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.messages: list[JobMessage] = []
        monkeypatch.setattr(BrokerThread, "start", lambda thread: None)
        monkeypatch.setattr(Heartbeat, "start", lambda heartbeat: None)
        # The connection is the test's, and so is its transaction.
        monkeypatch.setattr(BaseDatabaseWrapper, "close", lambda connection: None)
        monkeypatch.setattr(BaseDatabaseWrapper, "close_if_unusable_or_obsolete", lambda connection: None)
        monkeypatch.setattr(BrokerThread, "join", lambda thread, timeout: None)
        monkeypatch.setattr(celery.app, "send_task", self.collect)
        self.executor = CeleryExecutor()
        monkeypatch.setattr(self.executor.sender, "put", lambda job: self.executor.send(None, job))
        self.applier = Applier(self.executor, host="control")
        self.is_stopping = False
        self.worker = self.start_worker("worker-1")

    def start_worker(self, host: str) -> WorkerProcess:
        worker = WorkerProcess(host, lambda: self.is_stopping)
        worker.replies.send = self.reply  # type: ignore[method-assign]
        return worker

    def collect(self, name: str, kwargs: dict[str, Any], **options: Any) -> None:
        self.messages.append(JobMessage.of(kwargs))

    def reply(self, queue: str, reply: Reply) -> None:
        self.executor.receiver.replies.put(asdict(reply))

    def advance(self) -> None:
        """Make the applier read the replies, and advance."""
        self.applier.poll_soon()
        self.executor.next_sweep = 0
        self.applier.collect(0)
        self.applier.advance()

    def deliver(self, worker: WorkerProcess | None = None) -> None:
        messages, self.messages = self.messages, []
        for message in messages:
            (worker or self.worker).handle(message)

    def run_until_idle(self) -> None:
        """Advance the applier and deliver all messages until the applier is idle."""
        for _ in range(50):
            self.advance()
            if self.applier.is_idle:
                return
            self.deliver()

    def stop(self) -> None:
        self.worker.retire()
        self.applier.stop()
