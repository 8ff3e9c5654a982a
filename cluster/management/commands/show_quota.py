"""``manage.py show_quota PROJECT``: print the usage and the limits of a project."""

from typing import Any

from django.core.management import CommandParser

from cluster.drivers.quotas import RESOURCES, UNLIMITED, limits_of, usage_of
from cluster.models import ProjectQuota
from watcher_site.accounts.projects import checked_project
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Print the usage and the limits of a project."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project", help="the project's id in the cloud")

    def handle(self, *args: Any, project: str, **options: Any) -> str:
        return describe_quota(checked_project(project))


def describe_quota(project: str) -> str:
    """Return a line for each resource of a project: its usage, its limit, and whether this is the site's default."""
    quota = ProjectQuota.objects.filter(project_id=project).first() or ProjectQuota(project_id=project)
    limits, usage = limits_of(quota), usage_of(project)
    return "\n".join(
        f"{name}: {usage[name]} of {'unlimited' if limits[name] == UNLIMITED else limits[name]}"
        f"{' (default)' if getattr(quota, name) is None else ''}"
        for name in RESOURCES
    )
