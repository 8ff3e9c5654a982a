"""The Celery task that handles a job message, and the start and stop of worker processes."""

import mmap
from typing import Any

from celery.signals import setup_logging, worker_process_init, worker_process_shutdown, worker_shutting_down
from django.conf import settings

from plans.workers.messages import TASK, JobMessage
from plans.workers.process import WorkerProcess
from watcher_site.celery import app

# Shared memory, which forked processes inherit. A signal handler writes to it, so there is no lock.
STOPPING = mmap.mmap(-1, 1)
process = WorkerProcess(settings.HOST, lambda: STOPPING[0] != 0)


@app.task(name=TASK, ignore_result=True)
def work(**message: Any) -> None:
    process.handle(JobMessage.of(message))


@worker_process_init.connect
def start_process(**_: Any) -> None:
    process.start()


@worker_process_shutdown.connect
def stop_process(**_: Any) -> None:
    process.stop()


@worker_shutting_down.connect
def set_stopping(**_: Any) -> None:
    STOPPING[0] = 1


@setup_logging.connect
def keep_logging(**_: Any) -> None:
    """Keep the site's logging: Celery does not configure its own if this signal has a receiver."""
