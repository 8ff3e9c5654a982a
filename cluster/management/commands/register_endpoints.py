"""``manage.py register_endpoints URL``: register the site in Keystone's service catalog."""

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management import CommandError, CommandParser
from django.core.validators import URLValidator

from cluster.drivers.base import CloudError, CloudMisconfigured, OperationRefused
from watcher_site.processes import commands
from watcher_site.processes.command_line import OUT_OF_ORDER
from watcher_site.refusals import Invalid

INTERFACES = ("public", "internal", "admin")
ROLES = ("admin", "service")


class Command(commands.Command):
    help = (
        "Create the service infra-optim with its endpoints in Keystone's catalog, and with --user the site's user. "
        "--cloud, or OS_CLOUD, names the cloud in clouds.yaml, whose user must be an administrator; the first line of "
        "the output says which it is. What is there already stays."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("url", help="the address of the site, such as https://watcher.example.org")
        parser.add_argument("--cloud", default="", help="the cloud in clouds.yaml (OS_CLOUD, or the only one)")
        parser.add_argument("--region", help="the region of the endpoints (that of clouds.yaml, or the only one)")
        parser.add_argument(
            "--interface", action="append", choices=INTERFACES, help="an interface; may be repeated (all three)"
        )
        parser.add_argument("--name", default="watcher", help="the name of the service (%(default)s)")
        parser.add_argument("--orchestration", metavar="TYPE", help="also register Heat's API, under this type")
        parser.add_argument("--compute", metavar="TYPE", help="also register Nova's API, under this type")
        parser.add_argument("--user", help="also create this user, with WATCHER_USER_PASSWORD or a random password")
        parser.add_argument("--project", default="service", help="the project of the user (%(default)s)")
        parser.add_argument("--domain", default="default", help="the domain of user and project (%(default)s)")
        parser.add_argument("--role", action="append", help="a role of the user; may be repeated (admin and service)")

    def handle(self, *args: Any, url: str, user: str | None, **options: Any) -> None:
        try:
            URLValidator(schemes=["http", "https"])(url)
        except ValidationError:
            raise Invalid(f"url: {url} is not an address that begins with http:// or https://.") from None
        if url.rstrip("/").endswith("/v1"):
            raise Invalid("url: must be the address of the site without /v1, which clients add.")
        try:
            from cluster.drivers.openstack import access, catalog
        except ImportError as problem:
            raise Invalid("The extra [openstack] is not installed.") from problem
        try:
            with access.translated():
                cloud = access.connect(name=options["cloud"])
                self.stdout.write(f"cloud {cloud.config.name}: {cloud.config.auth.get('auth_url')}")
                region = catalog.choose_region(cloud, options["region"])
                domain = catalog.find_domain(cloud, options["domain"])
                roles = catalog.find_roles(cloud, (options["role"] or ROLES) if user else ())
                entries = catalog.site_entries(options["name"], options["orchestration"], options["compute"])
                interfaces = options["interface"] or INTERFACES
                for line in catalog.register_endpoints(cloud, entries, url, region, interfaces):
                    self.stdout.write(line)
                if user:
                    project, password = options["project"], settings.USER_PASSWORD
                    for line in catalog.register_user(cloud, user, domain, project, roles, password):
                        self.stdout.write(line)
        except (CloudMisconfigured, OperationRefused) as problem:
            raise Invalid(str(problem)) from problem
        except CloudError as problem:
            raise CommandError(commands.one_line(problem), returncode=OUT_OF_ORDER) from problem
