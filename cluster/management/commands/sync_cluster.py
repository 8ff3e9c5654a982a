"""``manage.py sync_cluster``: read the whole cloud into the site's tables."""

from typing import Any

from django.core.management.base import CommandError

from cluster.drivers.base import CloudError, CloudMisconfigured, cloud
from cluster.operations.synchronization import synchronize
from watcher_site.processes import commands
from watcher_site.processes.command_line import OUT_OF_ORDER
from watcher_site.refusals import Invalid


class Command(commands.Command):
    help = "Read compute nodes, servers, flavors, aggregates and volumes of a real cloud into the site's tables."

    def handle(self, *args: Any, **options: Any) -> None:
        if not cloud().is_mirrored:
            raise Invalid("WATCHER_CLOUD: the embedded cloud is in the site's own tables: there is nothing to read.")
        try:
            report = synchronize()
        except CloudMisconfigured as problem:
            raise Invalid(str(problem)) from problem
        except CloudError as problem:
            raise CommandError(commands.one_line(problem), returncode=OUT_OF_ORDER) from problem
        if report is None:
            return
        for remark in report.remarks:
            self.stdout.write(remark)
        counts = f"{report.created} new, {report.changed} changed, {report.unchanged} as they were"
        self.stdout.write(f"{counts}, {report.removed} gone")
