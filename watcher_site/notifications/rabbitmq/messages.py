"""The messages and queues of RabbitMQ, in the format of oslo.messaging's rabbit driver (18.3).

The sources, in the package oslo_messaging: `_drivers/common.py` (serialize_msg), `_drivers/amqp.py` (_add_unique_id),
and `_drivers/impl_rabbit.py` (notify_send, _publish_and_creates_default_queue, _publish).
"""

from typing import Any
from uuid import uuid4

import orjson
from amqp import Message
from kombu import Exchange, Queue
from kombu.compression import compress
from oslo_messaging._drivers.amqp import UNIQUE_ID
from oslo_messaging._drivers.impl_rabbit import Connection, _get_queue_arguments

ENVELOPE_VERSION = "2.0"


def envelope(message: dict[str, Any]) -> bytes:
    """Return the body that carries a message.

    Each sending has an id of its own, by which listeners recognize messages that the broker delivers twice.

    Raises:
        TypeError: a part of the message is no JSON.
    """
    inner = orjson.dumps({**message, UNIQUE_ID: uuid4().hex}).decode()
    return orjson.dumps({"oslo.version": ENVELOPE_VERSION, "oslo.message": inner})


def persistent_message(body: bytes, compression: str | None = None) -> Message:
    """Return a message with the properties that kombu gives it for oslo.messaging."""
    headers: dict[str, str] = {}
    content: bytes | str = body
    if compression:
        content, headers["compression"] = compress(body, compression)
    return Message(
        content,
        priority=0,
        content_type="application/json",
        content_encoding="utf-8",
        application_headers=headers,
        delivery_mode=2,
    )


def default_queue(connection: Connection, exchange: str, name: str) -> Queue:
    """Return the queue that a notifier makes where there is none, bound to its exchange under its own name."""
    options = {"durable": connection.durable, "auto_delete": connection.amqp_auto_delete}
    arguments = _get_queue_arguments(
        connection.rabbit_ha_queues,
        0,
        connection.rabbit_quorum_queue,
        connection.rabbit_quorum_queue_config,
        False,
    )
    return Queue(
        name,
        exchange=Exchange(exchange, type="topic", **options),
        routing_key=name,
        queue_arguments=arguments,
        **options,
    )
