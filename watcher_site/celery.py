"""The Celery app: how actions travel to the workers. Imported only where `settings.EXECUTOR` is celery.

A message is a hint: what it is about stands in the tables. So none is written to the broker's disk, one that is lost
is sent again, and one that comes twice finds nothing to do.
"""

from celery import Celery
from django.conf import settings
from kombu import Exchange, Queue

TRANSIENT = 1


def queue_names() -> list[str]:
    """Return every queue that actions are sent to."""
    return list(dict.fromkeys([settings.CELERY_QUEUE, *settings.CELERY_QUEUES.values()]))


def make_queue(name: str) -> Queue:
    return Queue(name, Exchange("", type="direct"), routing_key=name, durable=True)


# Connections to the database are the executors' to care for: Celery's own ways with Django are left out.
app = Celery("watcher_site", broker=settings.CELERY_BROKER_URL, fixups=set())
app.conf.update(
    imports=["plans.tasks"],
    # An action is its worker's until it is done: what a lost worker held is delivered again.
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    task_ignore_result=True,
    task_queues=[make_queue(name) for name in queue_names()],
    task_default_queue=settings.CELERY_QUEUE,
    task_default_exchange="",
    task_default_routing_key=settings.CELERY_QUEUE,
    task_default_delivery_mode=TRANSIENT,
    task_serializer="json",
    accept_content=["json"],
    # A worker waits for its broker, at its start too, and whatever it was that the broker closed its channel for.
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_channel_error_retry=True,
    broker_connection_timeout=4,
    broker_transport_options={"confirm_publish": True},
    # Who looks after the workers are the tables.
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    # The site's own logs.
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    # A busy machine takes its time to fork.
    worker_proc_alive_timeout=60,
)
