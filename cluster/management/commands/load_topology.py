"""``manage.py load_topology FILE``: fill the embedded cloud from a topology file."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from cluster.json_lines import InvalidValue, NotJSON, line_of, parse_document
from cluster.topology.loading import Report, load_topology
from watcher_site.history import record
from watcher_site.processes import commands
from watcher_site.refusals import Invalid

# The limit is larger than the file of a cloud with a hundred thousand servers.
MAX_BYTES = 64 * 1024 * 1024


def load_file(path: Path) -> Report:
    """Load a topology file.

    Raises:
        Invalid: the file cannot be read or is invalid; the message begins with the file and the line.
    """
    text = ""
    try:
        text, document = parse_document(read(path))
        return load(path, document)
    except NotJSON as problem:
        raise Invalid(f"{path}:{problem.line}: {problem}") from problem
    except InvalidValue as problem:
        raise Invalid(f"{path}:{line_of(text, problem.path)}: {problem}") from problem


@transaction.atomic
def load(path: Path, document: Any) -> Report:
    report = load_topology(document)
    record("topology.load", path.name, details={"created": report.created, "changed": report.changed})
    return report


def read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else problem
        raise Invalid(f"{path}: cannot be read: {reason}.") from problem
    if len(content) > MAX_BYTES:
        raise Invalid(f"{path}: must not be larger than {MAX_BYTES} bytes.")
    return content


class Command(commands.Command):
    help = "Fill the embedded cloud with the compute nodes and servers of a JSON file. It may be loaded again."
    refusal_prefix = ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="the topology; docs/topology.md describes the format")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        report = load_file(file)
        self.stdout.write(f"{report.created} new, {report.changed} changed, {report.unchanged} as they were")
