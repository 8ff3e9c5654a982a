"""``manage.py use_pool POOL``: open and close connections to the servers in a pool of the embedded load balancer."""

from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from cluster.drivers.balancing import balancer
from cluster.drivers.base import CloudError
from cluster.drivers.embedded.balancing import EmbeddedBalancer
from watcher_site.history import record
from watcher_site.processes import commands
from watcher_site.refusals import Conflict, Refused

MAX_CONNECTIONS = 1_000_000


class Command(commands.Command):
    help = "Open and close connections to the servers in a pool of the embedded cloud, and show the number of each."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("pool", help="the pool's UUID or name")
        parser.add_argument(
            "--open", type=number, default=0, metavar="N", help="open N new connections to its servers"
        )
        parser.add_argument("--close", type=number, default=0, metavar="N", help="close N connections, or all")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.use(options["pool"], options["open"], options["close"])
        except CloudError as problem:
            raise Refused(str(problem)) from problem

    def use(self, pool: str, opened: int, closed: int) -> None:
        balancing = balancer()
        if not isinstance(balancing, EmbeddedBalancer):
            raise Conflict("WATCHER_CLOUD: the connections of a real cloud are its own.")
        if opened or closed:
            change(balancing, pool, opened, closed)
        for member in balancing.members(pool):
            self.stdout.write(f"{member.server} weight {member.weight} connections {member.connections}")


@transaction.atomic
def change(balancing: EmbeddedBalancer, pool: str, opened: int, closed: int) -> None:
    if opened:
        balancing.open_connections(pool, opened)
    if closed:
        balancing.close_connections(pool, closed)
    record("balancing_pool.use", balancing.find_pool(pool), details={"open": opened, "close": closed})


def number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_CONNECTIONS):
        raise ArgumentTypeError(f"must be a whole number up to {MAX_CONNECTIONS}")
    return int(text)
