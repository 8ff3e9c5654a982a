"""The ``openstack`` command in a process that has imported the client, which takes longer than most commands.

``warm_client.py serve SOCKET`` imports it once and forks for each command; ``warm_client.py run SOCKET ARGUMENT…`` is
a command: it sends its arguments, environment, folder and files, and exits with the status of the command.

Both run in the environment of the suites, which does not contain the packages of the site.
"""

import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from importlib import import_module

STANDARD_FILES = (0, 1, 2)
# In bytes; a message holds the arguments and the environment.
LARGEST_MESSAGE = 2**17


def serve(path: str) -> None:
    """Serve commands until the process is terminated."""
    main: Callable[[list[str]], int] = import_module("openstackclient.shell").main
    # Ended processes are reaped automatically.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen()
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                listener.close()
                answer(connection, main)
            connection.close()


def answer(connection: socket.socket, main: Callable[[list[str]], int]) -> None:
    """Run the command of a connection in this process, and end the process."""
    message, files, _, _ = socket.recv_fds(connection, LARGEST_MESSAGE, len(STANDARD_FILES))
    order = json.loads(message)
    for own, handed_over in zip(STANDARD_FILES, files, strict=True):
        os.dup2(handed_over, own)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    status = run_command(main, order["arguments"])
    connection.send(str(status).encode())
    os._exit(0)


def run_command(main: Callable[[list[str]], int], arguments: list[str]) -> int:
    sys.argv = ["openstack", *arguments]
    try:
        status = main(arguments)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return status or 0


def run(path: str, *arguments: str) -> int:
    """Run a command in the serving process with the files of this process; return its exit status."""
    order = {"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd()}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(path)
        socket.send_fds(connection, [json.dumps(order).encode()], STANDARD_FILES)
        return int(connection.recv(LARGEST_MESSAGE) or 1)


if __name__ == "__main__":
    role, path, *rest = sys.argv[1:]
    sys.exit(serve(path) if role == "serve" else run(path, *rest))
