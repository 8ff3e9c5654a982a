"""``manage.py mark_unhealthy``: say that something is unhealthy, or take that back."""

from typing import Any

from django.core.management import CommandParser

from cluster.models import Node, Server, Stack
from cluster.operations.marks import Mark, Markable
from cluster.stacks.lookup import find_resource, find_stack
from plans.operations.marks import mark
from watcher_site.database.records import parse_uuid
from watcher_site.processes import commands
from watcher_site.refusals import Invalid, NotFound

MODELS: dict[str, Any] = {"server": Server, "node": Node}
KINDS = [*MODELS, "stack", "resource"]


class Command(commands.Command):
    help = "Mark a server, a node of a cluster, a stack or a resource of one as unhealthy, and print its state."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("kind", choices=KINDS)
        parser.add_argument(
            "names",
            nargs="+",
            metavar="name",
            help="a server's or a node's UUID, a stack's UUID or name; for a resource that of its stack and its own",
        )
        parser.add_argument("--reason", default="", help="why")
        parser.add_argument("--reset", action="store_true", help="take back that it is unhealthy")
        commands.add_person(parser)

    def handle(
        self, *args: Any, kind: str, names: list[str], reason: str, reset: bool, person: str, **options: Any
    ) -> str:
        found = mark(find(kind, names), not reset, reason, commands.caller(person))
        return describe_mark(found)


def describe_mark(found: Mark) -> str:
    word = "unhealthy" if found.unhealthy else "not marked unhealthy"
    return f"{found.object_type} {found.object_name}: {word}{f': {found.reason}' if found.reason else ''}"


def find(kind: str, names: list[str]) -> Markable:
    """Return what is meant. Raises: `Invalid`, `NotFound`."""
    expected = ("its stack", "itself") if kind == "resource" else ("itself",)
    if len(names) != len(expected):
        wanted = " and one for ".join(expected)
        raise Invalid(f"name: a {kind} has one for {wanted}; {len(names)} were given.")
    if kind in MODELS:
        return find_by_uuid(kind, names[0])
    stack = find_stack(Stack.objects.present(), names[0])
    return stack if kind == "stack" else find_resource(stack, names[1])


def find_by_uuid(kind: str, name: str) -> Markable:
    uuid = parse_uuid(name)
    if uuid is None:
        raise Invalid(f"name: {name} is no UUID.")
    found: Markable | None = MODELS[kind].objects.present().filter(uuid=uuid).first()
    if found is None:
        raise NotFound(f"{kind.capitalize()} {name} could not be found")
    return found
