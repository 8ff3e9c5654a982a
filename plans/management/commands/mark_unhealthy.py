"""``manage.py mark_unhealthy``: mark an object as unhealthy, or remove the mark."""

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
            help="UUID of a server or a node; UUID or name of a stack; stack and name of a resource",
        )
        parser.add_argument("--reason", default="", help="the reason")
        parser.add_argument("--reset", action="store_true", help="remove the mark")
        commands.add_person(parser)

    def handle(
        self, *args: Any, kind: str, names: list[str], reason: str, reset: bool, person: str, **options: Any
    ) -> str:
        found = mark(find(kind, names), not reset, reason, commands.caller(person))
        return describe_mark(found)


def describe_mark(found: Mark) -> str:
    health = "unhealthy" if found.unhealthy else "not marked unhealthy"
    return f"{found.object_type} {found.object_name}: {health}{f': {found.reason}' if found.reason else ''}"


def find(kind: str, names: list[str]) -> Markable:
    """Return the object with these names. Raises: `Invalid`, `NotFound`."""
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
        raise Invalid(f"name: {name} is not a UUID.")
    found: Markable | None = MODELS[kind].objects.present().filter(uuid=uuid).first()
    if found is None:
        raise NotFound(f"{kind.capitalize()} {name} could not be found")
    return found
