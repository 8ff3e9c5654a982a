"""The ports on which processes listen, such as those for metrics.

This module does not use Django's settings, because the main process of gunicorn does not load them.
"""

import errno
import socket
from collections.abc import Sequence

from watcher_site.refusals import Invalid

VARIABLE = "WATCHER_METRICS_PORTS"


def listen_on_first(
    ports: Sequence[int], address: str, variable: str = VARIABLE, address_variable: str = "WATCHER_METRICS_BIND"
) -> socket.socket:
    """Listen on the first free port.

    Args:
        variable: the variable that names the ports, for messages.
        address_variable: the variable that names the address.

    Raises:
        Invalid: all ports are in use, or the address is not one of this machine.
    """
    for port in ports:
        try:
            return listen(port, address)
        except OSError as problem:
            if problem.errno != errno.EADDRINUSE:
                raise Invalid(f"{address_variable}, {variable}: {problem.strerror or problem}.") from problem
    taken = f"port {ports[0]} is" if len(ports) == 1 else f"all ports from {ports[0]} to {ports[-1]} are"
    raise Invalid(f"{variable}: {taken} in use.")


def listen(port: int, address: str) -> socket.socket:
    """Return a listening socket, which several processes may accept connections from."""
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen()
        # Another process may accept a connection first.
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def is_free(port: int, address: str) -> bool:
    try:
        listen(port, address).close()
    except OSError:
        return False
    return True
