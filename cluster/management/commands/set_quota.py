"""``manage.py set_quota PROJECT``: limit the servers, vCPUs, memory and stacks of a project."""

from typing import Any

from django.core.management import CommandParser

from cluster.drivers.quotas import RESOURCES, set_quota
from cluster.management.commands.show_quota import describe_quota
from watcher_site.processes import commands
from watcher_site.refusals import Invalid

DEFAULT = "default"


class Command(commands.Command):
    help = "Set the limits of a project: a number, -1 for unlimited, or 'default' for the site's limit."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project", help="the project's id in the cloud")
        for name in RESOURCES:
            unit = " in MB" if name == "memory" else ""
            parser.add_argument(f"--{name}", metavar="LIMIT", help=f"the limit of {name}{unit}")

    def handle(self, *args: Any, project: str, **options: Any) -> str:
        limits = {name: options[name] for name in RESOURCES if options[name] is not None}
        if not limits:
            raise Invalid(f"a limit is required: one of --{', --'.join(RESOURCES)}.")
        set_quota(project, {name: read_limit(name, limit) for name, limit in limits.items()})
        return describe_quota(project)


def read_limit(name: str, text: str) -> int | None:
    """Parse a limit from the command line; None for the site's default. Raises: `Invalid`."""
    if text == DEFAULT:
        return None
    try:
        return int(text)
    except ValueError:
        raise Invalid(f"{name}: must be a whole number or {DEFAULT!r}, not {text!r}.") from None
