"""Creation, deletion, reboots and rebuilds of servers in an OpenStack cloud, through Nova."""

import re
from abc import ABC
from collections.abc import Callable, Mapping
from typing import Any

from openstack.connection import Connection

from cluster.drivers import openstack_messages as messages
from cluster.drivers.base import (
    Checkpoint,
    CloudServer,
    CloudUnavailable,
    NewServer,
    NoValidHost,
    OperationFailed,
    OperationRefused,
    ServerNotFound,
    proceed,
)
from cluster.drivers.messages import HAS_RUN, OTHER_STATUS
from cluster.drivers.openstack.access import Access
from cluster.drivers.openstack.items import has_volumes
from cluster.drivers.openstack.operations import (
    find_reason,
    is_marked,
    make_failure,
    read_fault,
    wait_for_begin,
    wait_until,
)
from cluster.drivers.openstack.references import require_usable, require_usable_image
from cluster.drivers.openstack.servers import WAITING, OpenStackServers, find_trust_of, require_no_task
from cluster.drivers.openstack.trusts import TrustedAccesses
from cluster.drivers.quotas import explain_foreign_project
from cluster.drivers.scheduler import find_host_of
from cluster.drivers.server_properties import device_of, encode
from cluster.models import Server
from cluster.synchronization.mirroring import record_given_up, record_server_gone, record_server_well
from watcher_site.database.records import parse_uuid

# The metadata key of the token with which a server was created.
TOKEN = "watcher_token"  # noqa: S105 (no secret)
# The properties that openstacksdk accepts with the same name and value.
PASSED_THROUGH = ("key_name", "config_drive", "scheduler_hints", "tags", "description")
# The user data of an existing server as Nova returns it: base64 of data that may not be text.
ENCODED_USER_DATA = "encoded_user_data"
BUILDING, RUNNING, STOPPED, BROKEN = "BUILD", "ACTIVE", "SHUTOFF", "ERROR"
DELETED_STATUSES = {"DELETED", "SOFT_DELETED"}


class OpenStackLifecycle(OpenStackServers, ABC):
    """The lifecycle of servers in Nova. The metadata of a server contains the token of its creation."""

    trusted: TrustedAccesses

    def create_server(self, request: NewServer, checkpoint: Checkpoint = proceed) -> CloudServer:
        access = self.access_for(request)
        details = self.find_by_token(request.name, request.token, request.project or self.access.project)
        if details is not None and details.status == BROKEN:
            self.delete_server(details.id, checkpoint)
            details = None
        server = (details or self.request_server(request, access, checkpoint)).id
        operation = messages.CREATING.fill(server=server)
        details = wait_until(lambda: self.fetch_server(server), is_built, operation, checkpoint)
        if details.status == BROKEN:
            raise self.delete_failed_server(server, operation, checkpoint)
        return self.describe(details)

    def build_server(self, server: str, checkpoint: Checkpoint = proceed, host: str | None = None) -> None:
        """Create a replacement and delete the server, since Nova cannot rebuild a server that never ran."""
        details = self.fetch_server(server, self.access.read)
        if details.launched_at or details.status != BROKEN:
            raise OperationRefused(HAS_RUN.fill(server=server))
        self.create_server(self.make_replacement(details, host), checkpoint)
        self.delete_server(server, checkpoint)

    def make_replacement(self, server: Any, host: str | None) -> NewServer:
        """Return the request for a replacement of a server. The token is the server's UUID, so only one is created.

        In another project, Nova creates it as the owner, by a trust, and chooses the host itself.

        Raises:
            OperationRefused: it would have another owner, or cannot have the same properties.
        """
        is_own = server.project_id == self.access.project
        trust = None if is_own else find_trust_of(server)
        if trust is None and not is_own:
            raise OperationRefused(
                messages.OTHER_OWNER.fill(server=server.id, user=server.user_id, project=server.project_id)
            )
        if is_own and server.key_name and server.user_id != self.access.user:
            raise OperationRefused(messages.OTHER_KEY_PAIR.fill(key=server.key_name, server=server.id))
        if has_volumes(server):
            raise OperationRefused(messages.HAS_VOLUMES.fill(server=server.id))
        return NewServer(
            name=server.name,
            flavor=server.flavor.original_name or server.flavor.name,
            token=server.id,
            image=image_of(server),
            metadata={name: value for name, value in (server.metadata or {}).items() if name != TOKEN},
            zone=server.availability_zone or None,
            host=host if is_own else None,
            project=server.project_id,
            trust=trust.keystone_id if trust else "",
            properties=properties_of(server),
        )

    def find_host(self, server: str) -> str | None:
        return find_host_of(server)

    def access_for(self, request: NewServer) -> Access:
        """Return the access to Nova for creating a server: in the login's project, or in another one by a trust.

        All other operations on servers of other projects use the rights of the login itself.

        Raises:
            OperationRefused: another project was requested without a trust, or with a host, which only
                administrators may choose.
        """
        if request.project in ("", self.access.project):
            return self.access
        if reason := explain_foreign_project(request.project, self.access.project, bool(request.trust)):
            raise OperationRefused(reason)
        if request.host:
            raise OperationRefused(messages.HOST_NOT_CHOSEN.fill(project=request.project))
        return self.trusted.of(request.trust)

    def reset_state(self, server: str, state: str, *, reason: str | None = None, expected: str | None = None) -> None:
        """Reset the state in Nova, and record in the site's table that a PENDING server was given up.

        In Nova, such a server is in ERROR before and after, and does not accept metadata or tags.
        """
        status = self.find_server(server).status
        if expected and status != expected:
            raise OperationRefused(OTHER_STATUS.fill(server=server, status=status, expected=expected))
        self.access.send(lambda cloud: cloud.compute.reset_server_state(server, state), ServerNotFound(server))
        if status == WAITING:
            record_given_up(server)
        if self.find_server(server).status == RUNNING:
            record_server_well(server)

    def find_created(self, name: str, token: str, project: str = "") -> CloudServer | None:
        server = self.find_by_token(name, token, project or self.access.project)
        return self.describe(server) if server is not None else None

    def find_by_token(self, name: str, token: str, project: str) -> Any:
        """Return the site's server of a project with this name and token, or None.

        Nova filters by a pattern, in which a dot replaces any special character of the name.
        """
        pattern = f"^{re.sub(r'[^0-9A-Za-z_ -]', '.', name)}$"
        servers = self.access.read(
            lambda cloud: list(cloud.compute.servers(all_projects=True, name=pattern, project_id=project))
        )
        created = (
            server
            for server in servers
            if (server.metadata or {}).get(TOKEN) == token and server.project_id == project
        )
        return next((server for server in created if server.status not in DELETED_STATUSES), None)

    def request_server(self, request: NewServer, access: Access, checkpoint: Checkpoint) -> Any:
        """Request a server once. If the response is lost, search the list of servers for it.

        If the site acts as an administrator, it checks references itself, because Nova does not.
        """
        flavor = self.find_flavor(request.flavor).flavor_id
        if access is self.access:
            require_usable(request, flavor, access)
        attributes = {
            "name": request.name,
            "flavor_id": flavor,
            "image_id": request.image or "",
            "metadata": {**request.metadata, TOKEN: request.token},
            **attributes_of(request.properties, access),
            **{name: value for name, value in (("availability_zone", request.zone), ("host", request.host)) if value},
        }
        try:
            return access.send(lambda cloud: cloud.compute.create_server(**attributes))
        except CloudUnavailable as problem:
            return wait_for_begin(
                lambda: self.find_by_token(request.name, request.token, request.project or self.access.project),
                lambda server: server is not None,
                problem,
                messages.CREATING.fill(server=request.name),
                checkpoint,
            )

    def delete_failed_server(
        self, server: str, operation: str, checkpoint: Checkpoint
    ) -> OperationFailed | NoValidHost:
        """Delete a server that Nova could not build, and return the error with Nova's reason."""
        reason = self.access.read(lambda cloud: read_fault(cloud, server))
        self.delete_server(server, checkpoint)
        return make_failure(operation, reason)

    def delete_server(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        self.fetch_server(server, self.access.read)
        operation = messages.DELETING.fill(server=server)
        try:
            self.access.read(lambda cloud: delete(cloud, server), ServerNotFound(server))
            details = wait_until(lambda: self.fetch_server(server), is_deleted, operation, checkpoint)
        except ServerNotFound:
            return record_server_gone(server)
        if details.status == BROKEN:
            raise self.failed(operation, server)
        return record_server_gone(server)

    def reboot_server(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        """Reboot a running server softly, so that its guest can shut down, and any other hard."""
        details, operation = self.find_built(server), messages.REBOOTING.fill(server=server)
        kind = "SOFT" if details.status == RUNNING else "HARD"
        after = self.repair(
            details, "reboot", lambda cloud: cloud.compute.reboot_server(server, kind), operation, checkpoint
        )
        self.require_success(after, operation, RUNNING)

    def rebuild_server(self, server: str, image: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        details, operation = self.find_built(server), messages.REBUILDING.fill(server=server)
        new_image = image or image_of(details)
        if new_image is None:
            raise OperationRefused(messages.BOOTS_FROM_VOLUME.fill(server=server))
        if new_image != image_of(details):
            require_usable_image(new_image, self.access, details.project_id)
        after = self.repair(
            details, "rebuild", lambda cloud: cloud.compute.rebuild_server(server, new_image), operation, checkpoint
        )
        self.require_success(after, operation, RUNNING, STOPPED)
        record_server_well(server)

    def find_built(self, server: str) -> Any:
        """Return a server that was built. Raises: `OperationRefused`, where Nova would respond with a conflict."""
        details = self.fetch_server(server, self.access.read)
        if details.status == BROKEN and not details.launched_at:
            raise OperationRefused(messages.NEVER_BUILT.fill(server=server))
        return details

    def repair(
        self, server: Any, verb: str, begin: Callable[[Connection], Any], operation: str, checkpoint: Checkpoint
    ) -> CloudServer:
        """Request a repair and wait for its end; only wait if an earlier attempt at this work requested it.

        Nova's task states of a repair begin with its verb.
        """
        before = self.describe(server)
        if (before.task_state or "").startswith(verb) and is_marked(Server, before.uuid):
            return self.reconcile(before.uuid, checkpoint)
        require_no_task(before)
        return self.run_operation(before, begin, operation, checkpoint)

    def require_success(self, server: CloudServer, operation: str, *statuses: str) -> None:
        """Raise the error of a repair that failed, which may leave the status of the server unchanged."""
        reason = find_reason(self.access, server.uuid)
        if reason or server.status not in statuses:
            raise make_failure(operation, reason or messages.IT_IS_IN_STATUS.fill(status=server.status))


def attributes_of(properties: Mapping[str, Any], access: Access) -> dict[str, Any]:
    """Return the properties of a server as arguments of openstacksdk. Without networks, Nova chooses one.

    Raises:
        OperationRefused: there is no network with a requested name.
    """
    networks = properties.get("networks", "auto")
    attributes: dict[str, Any] = {name: properties[name] for name in PASSED_THROUGH if name in properties}
    if "security_groups" in properties:
        attributes["security_groups"] = [{"name": name} for name in properties["security_groups"]]
    if "user_data" in properties:
        attributes["user_data"] = encode(properties["user_data"])
    if ENCODED_USER_DATA in properties:
        attributes["user_data"] = properties[ENCODED_USER_DATA]
    if devices := properties.get("block_device_mapping_v2"):
        attributes["block_device_mapping"] = [device_of(device) for device in devices]
    attributes["networks"] = (
        networks if isinstance(networks, str) else [network_of(network, access) for network in networks]
    )
    return attributes


def network_of(network: Mapping[str, str], access: Access) -> dict[str, str]:
    if "port" in network:
        return {"port": network["port"]}
    address = {"fixed_ip": network["fixed_ip"]} if "fixed_ip" in network else {}
    return {"uuid": find_network(network["network"], access), **address}


def find_network(network: str, access: Access) -> str:
    """Return the id of a network by its id or its name; Nova accepts only ids. Raises: `OperationRefused`."""
    if parse_uuid(network):
        return network
    # An administrator sees the networks of all projects.
    candidates = access.read(lambda cloud: list(cloud.network.networks(name=network)))
    matches = [
        candidate for candidate in candidates if candidate.is_shared or candidate.project_id in (None, access.project)
    ]
    if len(matches) != 1:
        message = messages.NETWORK_AMBIGUOUS if matches else messages.NO_NETWORK
        raise OperationRefused(message.fill(network=network))
    return str(matches[0].id)


def delete(cloud: Connection, server: str) -> None:
    """Request the deletion of a server; Nova accepts this repeatedly until the server is gone."""
    cloud.compute.delete_server(server, ignore_missing=False)


def is_built(server: Any) -> bool:
    return server.status != BUILDING and server.task_state is None


def is_deleted(server: Any) -> bool:
    """Return whether a deletion has ended: a server that Nova could not delete is in ERROR without a task."""
    return server.status in DELETED_STATUSES or (server.status == BROKEN and server.task_state is None)


def properties_of(server: Any) -> dict[str, Any]:
    """Return the properties with which a server without a host was requested, as far as Nova returns them.

    It returns neither networks nor scheduler hints, except for the server group.
    """
    properties = {
        "key_name": server.key_name,
        "config_drive": server.config_drive in (True, "True", "true"),
        "description": server.description,
        "tags": list(server.tags or ()),
        "security_groups": sorted({group["name"] for group in server.security_groups or ()}),
        "scheduler_hints": {"group": server.server_groups[0]} if server.server_groups else None,
        ENCODED_USER_DATA: server.user_data,
    }
    return {name: value for name, value in properties.items() if value}


def image_of(server: Any) -> str | None:
    return (server.image and server.image.id) or None
