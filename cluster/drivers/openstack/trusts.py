"""Creation of servers as a user in a project, by a trust of Keystone, and the removal of trusts."""

from datetime import timedelta
from functools import partial
from typing import Any

import openstack.config
import structlog
from django.conf import settings
from django.db.models import Exists, OuterRef
from django.utils import timezone
from keystoneauth1 import exceptions as keystone
from keystoneauth1.loading import get_plugin_loader
from openstack.config.cloud_region import CloudRegion
from openstack.connection import Connection

from cluster.drivers.base import CloudError, CloudMisconfigured, OperationRefused
from cluster.drivers.openstack.access import APP_NAME, Access, explain
from cluster.models import Cluster, Node, Server, Stack, Trust

# The parts of a login in clouds.yaml that name its project, or another scope: a trust has its own.
SCOPES = (
    *("project_id", "project_name", "project_domain_id", "project_domain_name", "tenant_id", "tenant_name"),
    *("domain_id", "domain_name", "system_scope", "default_domain_id", "default_domain_name", "trust_id"),
)
# The types of logins to which a trust can be added: Keystone gives a token of a trust for a password.
WITH_PASSWORD = ("password", "v3password")
# A request chooses a trust before it writes what needs it.
UNUSED_FOR = timedelta(hours=1)
MOST_KEPT = 64
log = structlog.get_logger(__name__)


class TrustLost(OperationRefused):
    """Keystone refuses a trust: its user or a role of them is gone, or somebody deleted it."""


class TrustedAccess(Access):
    """Access to the cloud as a user in a project, by a trust."""

    def __init__(self, keystone_id: str) -> None:
        super().__init__()
        self.keystone_id = keystone_id

    def make_connection(self) -> Connection:
        return connect_by(self.keystone_id)

    def connect(self) -> Connection:
        connection = super().connect()
        try:
            connection.session.get_token()
        except (keystone.NotFound, keystone.Forbidden, keystone.Unauthorized) as problem:
            Trust.objects.fail(self.keystone_id)
            raise TrustLost(
                "The site may no longer create servers as the user who requested this: Keystone refuses the trust"
                f" ({explain(problem)}). A user of the project has to request it again, with a token of Keystone"
            ) from problem
        return connection


def connect_by(trust: str) -> Connection:
    """Return a connection by the login of ``clouds.yaml`` and a trust. Raises: `CloudMisconfigured`."""
    region = openstack.config.get_cloud_region(cloud=settings.OPENSTACK_CLOUD or None, app_name=APP_NAME)
    config = {**region.config, "api_timeout": settings.OPENSTACK_TIMEOUT}
    if config.get("auth_type") not in WITH_PASSWORD:
        raise CloudMisconfigured(
            "Servers are created in other projects than the site's only if clouds.yaml has a user name and a password;"
            f" its auth_type is {config.get('auth_type')}"
        )
    known = {name: value for name, value in config["auth"].items() if name not in SCOPES}
    loader: Any = get_plugin_loader(config["auth_type"])
    plugin = loader.load_from_options(**known, trust_id=trust)
    return Connection(
        config=CloudRegion(region.name, region.region_name, config, auth_plugin=plugin, app_name=APP_NAME)
    )


class TrustedAccesses:
    """The connections of a process by trusts, the last used ones."""

    def __init__(self) -> None:
        self.known: dict[str, TrustedAccess] = {}

    def of(self, keystone_id: str) -> TrustedAccess:
        found = self.known.pop(keystone_id, None) or TrustedAccess(keystone_id)
        self.known[keystone_id] = found
        for oldest in list(self.known)[:-MOST_KEPT]:
            self.known.pop(oldest, None)
        return found


def remove_unneeded_trusts(access: Access) -> None:
    """Delete the trusts that no stack, cluster or node has, and no server that waits for capacity; first in Keystone.

    A trust that Keystone does not delete now is deleted by the next call.
    """
    waiting = Server.objects.present().filter(state=Server.State.PENDING)
    unneeded = Trust.objects.filter(
        *(~Exists(model.objects.present().filter(trust=OuterRef("pk"))) for model in (Stack, Cluster, Node)),
        ~Exists(waiting.filter(project_id=OuterRef("project_id"), user_id=OuterRef("user_id"))),
        used_at__lt=timezone.now() - UNUSED_FOR,
    )
    for trust in unneeded:
        # From now on no request chooses it.
        if not unneeded.filter(pk=trust.pk).update(failed_at=trust.failed_at or timezone.now()):
            continue
        try:
            access.ask(partial(forget, keystone_id=trust.keystone_id))
        except CloudError as problem:
            log.warning("A trust could not be deleted.", trust=str(trust), reason=str(problem))
            continue
        Trust.objects.filter(pk=trust.pk, keystone_id=trust.keystone_id).delete()


def forget(cloud: Any, keystone_id: str) -> None:
    cloud.identity.delete_trust(keystone_id, ignore_missing=True)
