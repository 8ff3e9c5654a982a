"""A check that the message broker answers."""

from django.conf import settings

SECONDS = 2


class BrokerLost(Exception):
    """The broker does not answer or refuses the login. The message may name hosts and users, and is only for logs."""


def require_broker() -> None:
    """Connect to the broker and disconnect again, or do nothing if the site needs no broker.

    Raises:
        BrokerLost: it did not let us in within some seconds.
    """
    if settings.EXECUTOR != "celery":
        return
    from kombu import Connection  # Only where the extra [celery] was installed.

    connection = Connection(settings.CELERY_BROKER_URL, connect_timeout=SECONDS)
    try:
        # Once only: who asks, asks again.
        connection.transport.close_connection(connection.transport.establish_connection())
    except (*connection.connection_errors, *connection.channel_errors) as problem:
        raise BrokerLost(str(problem)) from problem
