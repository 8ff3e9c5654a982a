"""A connection check of the message broker."""

from django.conf import settings

SECONDS = 2


class BrokerLost(Exception):
    """The broker does not respond or refuses the login. The message may name hosts and users, and is only for logs."""


def require_broker() -> None:
    """Connect to the broker and disconnect again, or do nothing if the site needs no broker.

    Raises:
        BrokerLost: the connection failed or timed out.
    """
    if settings.EXECUTOR != "celery":
        return
    from kombu import Connection  # The package is in the extra [celery].

    connection = Connection(settings.CELERY_BROKER_URL, connect_timeout=SECONDS)
    try:
        # There are no retries: callers repeat the check.
        connection.transport.close_connection(connection.transport.establish_connection())
    except (*connection.connection_errors, *connection.channel_errors) as problem:
        raise BrokerLost(str(problem)) from problem
