"""The messages and queues of RabbitMQ, in the format of oslo.messaging's rabbit driver (18.3).

The sources, in the package oslo_messaging: `_drivers/common.py` (serialize_msg), `_drivers/amqp.py` (_add_unique_id),
and `_drivers/impl_rabbit.py` (notify_send, _publish_and_creates_default_queue, _get_queue_arguments).
"""

from typing import Any
from uuid import uuid4

import orjson
from kombu import Exchange, Queue

ENVELOPE_VERSION = "2.0"


def envelope(message: dict[str, Any]) -> bytes:
    """Return the body that carries a message.

    Each sending has an id of its own, by which listeners recognize messages that the broker delivers twice.

    Raises:
        TypeError: a part of the message is no JSON.
    """
    inner = orjson.dumps({**message, "_unique_id": uuid4().hex}).decode()
    return orjson.dumps({"oslo.version": ENVELOPE_VERSION, "oslo.message": inner})


def default_queue(options: Any, exchange: str, name: str) -> Queue:
    """Return the queue that a notifier makes where there is none, bound to its exchange under its own name.

    Args:
        options: those of oslo.messaging's rabbit driver.
    """
    kept = {
        "durable": options.amqp_durable_queues or options.rabbit_quorum_queue,
        "auto_delete": options.amqp_auto_delete,
    }
    return Queue(
        name,
        exchange=Exchange(exchange, type="topic", **kept),
        routing_key=name,
        queue_arguments=queue_arguments(options),
        **kept,
    )


def queue_arguments(options: Any) -> dict[str, Any]:
    """Return the arguments that a queue is declared with.

    Raises:
        ValueError: options contradict each other.
    """
    if options.rabbit_quorum_queue and options.rabbit_ha_queues:
        raise ValueError("rabbit_quorum_queue and rabbit_ha_queues exclude each other.")
    if options.rabbit_ha_queues:
        return {"x-ha-policy": "all"}
    if not options.rabbit_quorum_queue:
        return {}
    limits = {
        "x-delivery-limit": options.rabbit_quorum_delivery_limit,
        "x-max-in-memory-length": options.rabbit_quorum_max_memory_length,
        "x-max-in-memory-bytes": options.rabbit_quorum_max_memory_bytes,
    }
    return {"x-queue-type": "quorum", **{name: limit for name, limit in limits.items() if limit}}
