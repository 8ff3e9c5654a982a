"""Access to the cloud by trusts of Keystone, for creating servers as a user, and the removal of trusts."""

from collections.abc import Iterable
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

from cluster.drivers import openstack_messages as messages
from cluster.drivers.base import CloudError, CloudMisconfigured, OperationRefused
from cluster.drivers.openstack.access import APP_NAME, Access, explain
from cluster.drivers.openstack.session import CloudSession
from cluster.models import Cluster, Node, Server, Stack, Trust
from cluster.synchronization.cloud_contents import Item

# The scope in a login of clouds.yaml, which is removed because a trust has its own.
SCOPES = (
    *("project_id", "project_name", "project_domain_id", "project_domain_name", "tenant_id", "tenant_name"),
    *("domain_id", "domain_name", "system_scope", "default_domain_id", "default_domain_name", "trust_id"),
)
# The types of logins that support trusts: Keystone requires a password for a token of a trust.
PASSWORD_TYPES = ("password", "v3password")
# A request chooses a trust before it writes the object that refers to it.
UNUSED_AGE = timedelta(hours=1)
MAX_CONNECTIONS = 64
log = structlog.get_logger(__name__)


class TrustLost(OperationRefused):
    """Keystone refuses a trust, because it, its user, or a role of the user was deleted."""


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
            raise TrustLost(messages.TRUST_REFUSED.fill(reason=explain(problem))) from problem
        return connection


def connect_by(trust: str) -> Connection:
    """Return a connection with the login of ``clouds.yaml`` and a trust. Raises: `CloudMisconfigured`."""
    region = openstack.config.get_cloud_region(cloud=settings.OPENSTACK_CLOUD or None, app_name=APP_NAME)
    config = {**region.config, "api_timeout": settings.OPENSTACK_TIMEOUT}
    if config.get("auth_type") not in PASSWORD_TYPES:
        raise CloudMisconfigured(messages.TRUST_WITHOUT_PASSWORD.fill(type=config.get("auth_type")))
    options = {name: value for name, value in config["auth"].items() if name not in SCOPES}
    loader: Any = get_plugin_loader(config["auth_type"])
    plugin = loader.load_from_options(**options, trust_id=trust)
    return Connection(
        config=CloudRegion(
            region.name,
            region.region_name,
            config,
            auth_plugin=plugin,
            session_constructor=CloudSession,
            app_name=APP_NAME,
        )
    )


class TrustedAccesses:
    """The most recently used connections of a process by trusts."""

    def __init__(self) -> None:
        self.known: dict[str, TrustedAccess] = {}

    def of(self, keystone_id: str) -> TrustedAccess:
        access = self.known.pop(keystone_id, None) or TrustedAccess(keystone_id)
        self.known[keystone_id] = access
        for oldest in list(self.known)[:-MAX_CONNECTIONS]:
            self.known.pop(oldest, None)
        return access


def remove_unneeded_trusts(access: Access, servers: Iterable[Item]) -> None:
    """Delete the trusts that no stack, cluster, node or PENDING server needs, first in Keystone.

    If Keystone does not delete a trust, the next call tries again.

    Args:
        servers: the servers of a reading that is not yet written to the table.
    """
    owners = {
        (server["project_id"], server["user_id"]) for server in servers if server["state"] == Server.State.PENDING
    }
    waiting = Server.objects.present().filter(state=Server.State.PENDING)
    unneeded = Trust.objects.filter(
        *(~Exists(model.objects.present().filter(trust=OuterRef("pk"))) for model in (Stack, Cluster, Node)),
        ~Exists(waiting.filter(project_id=OuterRef("project_id"), user_id=OuterRef("user_id"))),
        used_at__lt=timezone.now() - UNUSED_AGE,
    )
    for trust in unneeded:
        if (trust.project_id, trust.user_id) in owners:
            continue
        # Requests do not choose a trust with this value.
        if not unneeded.filter(pk=trust.pk).update(failed_at=trust.failed_at or timezone.now()):
            continue
        try:
            access.send(partial(delete_trust, keystone_id=trust.keystone_id))
        except CloudError as problem:
            log.warning("trust not deleted", trust=str(trust), reason=str(problem))
            continue
        Trust.objects.filter(pk=trust.pk, keystone_id=trust.keystone_id).delete()


def delete_trust(cloud: Any, keystone_id: str) -> None:
    cloud.identity.delete_trust(keystone_id, ignore_missing=True)
