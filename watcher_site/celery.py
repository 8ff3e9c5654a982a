"""The Celery app, which sends actions to workers. Imported only if `settings.EXECUTOR` is celery.

A message only refers to rows of the database, and may be lost or duplicated: messages are not persistent, a lost one
is sent again, and a duplicate has no effect.
"""

from celery import Celery
from django.conf import settings
from kombu import Exchange, Queue

TRANSIENT = 1


def queue_names() -> list[str]:
    """Return the names of all queues of actions."""
    return list(dict.fromkeys([settings.CELERY_QUEUE, *settings.CELERY_QUEUES.values()]))


def make_queue(name: str) -> Queue:
    return Queue(name, Exchange("", type="direct"), routing_key=name, durable=True)


# The executors manage the database connections, without Celery's fixup for Django.
app = Celery("watcher_site", broker=settings.CELERY_BROKER_URL, fixups=set())
app.conf.update(
    imports=["plans.tasks"],
    # A message is acknowledged when its action has ended, so that those of a lost worker are delivered again.
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
    # Workers wait for the broker, also at start, and reconnect after any error of a channel.
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_channel_error_retry=True,
    broker_connection_timeout=4,
    broker_transport_options={"confirm_publish": True},
    # The database has the state of workers.
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    # Logging is configured by the site.
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    # A busy machine may fork slowly.
    worker_proc_alive_timeout=60,
)
