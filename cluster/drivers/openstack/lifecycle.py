"""Creation, deletion, reboots and rebuilds of servers in an OpenStack cloud, through Nova."""

import re
from abc import ABC
from collections.abc import Callable, Mapping
from typing import Any

from openstack.connection import Connection

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
from cluster.drivers.openstack.access import Access
from cluster.drivers.openstack.items import has_volumes
from cluster.drivers.openstack.operations import (
    find_reason,
    is_marked,
    judge_failure,
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

# Under which a server's metadata holds the token that it was created with.
TOKEN = "watcher_token"  # noqa: S105 (no secret)
# The properties that openstacksdk takes by the same name and value.
AS_THEY_ARE = ("key_name", "config_drive", "scheduler_hints", "tags", "description")
# What Nova tells of the user data of a server, which may be no text.
ENCODED_USER_DATA = "encoded_user_data"
BUILDING, RUNNING, STOPPED, BROKEN = "BUILD", "ACTIVE", "SHUTOFF", "ERROR"
GONE = {"DELETED", "SOFT_DELETED"}


class OpenStackLifecycle(OpenStackServers, ABC):
    """Nova knows no tokens: a server's metadata tells which one it was created with."""

    trusted: TrustedAccesses

    def create_server(self, wanted: NewServer, checkpoint: Checkpoint = proceed) -> CloudServer:
        access = self.access_for(wanted)
        found = self.look_for(wanted.name, wanted.token, wanted.project or self.access.project)
        if found is not None and found.status == BROKEN:
            self.delete_server(found.id, checkpoint)
            found = None
        server = (found or self.ask_for(wanted, access, checkpoint)).id
        what = f"Creating instance {server}"
        found = wait_until(lambda: self.look(server), is_built, what, checkpoint)
        if found.status == BROKEN:
            raise self.withdraw(server, what, checkpoint)
        return self.describe(found)

    def build_server(self, server: str, checkpoint: Checkpoint = proceed, host: str | None = None) -> None:
        """Nova rebuilds nothing that never ran: another server is created in its place, with another UUID."""
        found = self.look(server, self.access.read)
        if found.launched_at or found.status != BROKEN:
            raise OperationRefused(f"Instance {server} has run before: it can be rebuilt")
        self.create_server(self.successor_of(found, host), checkpoint)
        self.delete_server(server, checkpoint)

    def successor_of(self, found: Any, host: str | None) -> NewServer:
        """Return the server to create in the place of one: known by its UUID, so that it is created once.

        Nova creates it as the owner, by a trust; where it lets nobody choose the ``host``, it chooses itself.

        Raises:
            OperationRefused: it would have another owner, or could not be like the former one.
        """
        is_own = found.project_id == self.access.project
        trust = None if is_own else find_trust_of(found)
        if trust is None and not is_own:
            raise OperationRefused(
                f"Another server in the place of instance {found.id} would not belong to its owner: user"
                f" {found.user_id} has not let the site create servers in project {found.project_id}"
            )
        if is_own and found.key_name and found.user_id != self.access.user:
            raise OperationRefused(f"The key pair {found.key_name} of instance {found.id} belongs to another user")
        if has_volumes(found):
            raise OperationRefused(f"Instance {found.id} has volumes: Nova does not tell how to create it again")
        return NewServer(
            name=found.name,
            flavor=found.flavor.original_name or found.flavor.name,
            token=found.id,
            image=image_of(found),
            metadata={name: value for name, value in (found.metadata or {}).items() if name != TOKEN},
            zone=found.availability_zone or None,
            host=host if is_own else None,
            project=found.project_id,
            trust=trust.keystone_id if trust else "",
            properties=properties_of(found),
        )

    def find_host(self, server: str) -> str | None:
        return find_host_of(server)

    def access_for(self, wanted: NewServer) -> Access:
        """Return the access by which Nova creates a server: in the project of the login, or in that of a trust.

        Everything else that is done to servers of other projects takes the rights of the login itself.

        Raises:
            OperationRefused: it is for another project, and there is no trust, or the host is decided: Nova lets
                administrators alone choose it.
        """
        if wanted.project in ("", self.access.project):
            return self.access
        if reason := explain_foreign_project(wanted.project, self.access.project, bool(wanted.trust)):
            raise OperationRefused(reason)
        if wanted.host:
            raise OperationRefused(
                f"Nova lets the site choose no host for servers of project {wanted.project}: have them kept apart, or"
                " together, by a server group (scheduler_hints) instead of the policy senlin.policy.affinity"
            )
        return self.trusted.of(wanted.trust)

    def reset_state(self, server: str, state: str, *, reason: str | None = None, expected: str | None = None) -> None:
        """Reset the state in Nova, and record in the site's table that a PENDING server was given up.

        Nova has such a server in ERROR before and after, and sets no metadata or tag in that state.
        """
        status = self.find_server(server).status
        if expected and status != expected:
            raise OperationRefused(f"Instance {server} is {status}, and no longer {expected}")
        self.access.ask(lambda cloud: cloud.compute.reset_server_state(server, state), ServerNotFound(server))
        if status == WAITING:
            record_given_up(server)
        if self.find_server(server).status == RUNNING:
            record_server_well(server)

    def find_created(self, name: str, token: str, project: str = "") -> CloudServer | None:
        found = self.look_for(name, token, project or self.access.project)
        return self.describe(found) if found is not None else None

    def look_for(self, name: str, token: str, project: str) -> Any:
        """Find a server of a project by name and token: what has the token elsewhere is not the site's.

        Nova takes a pattern, in which a dot stands for any special character of the name.
        """
        pattern = f"^{re.sub(r'[^0-9A-Za-z_ -]', '.', name)}$"
        servers = self.access.read(
            lambda cloud: list(cloud.compute.servers(all_projects=True, name=pattern, project_id=project))
        )
        created = (one for one in servers if (one.metadata or {}).get(TOKEN) == token and one.project_id == project)
        return next((one for one in created if one.status not in GONE), None)

    def ask_for(self, wanted: NewServer, access: Access, checkpoint: Checkpoint) -> Any:
        """Request a server once; if the answer is lost, the list of servers shows whether Nova creates it.

        Nova checks the objects that a user of a project names, but not those that the site names as an administrator.
        """
        flavor = self.find_flavor(wanted.flavor).flavor_id
        if access is self.access:
            require_usable(wanted, flavor, access)
        attributes = {
            "name": wanted.name,
            "flavor_id": flavor,
            "image_id": wanted.image or "",
            "metadata": {**wanted.metadata, TOKEN: wanted.token},
            **attributes_of(wanted.properties, access),
            **{name: value for name, value in (("availability_zone", wanted.zone), ("host", wanted.host)) if value},
        }
        try:
            return access.ask(lambda cloud: cloud.compute.create_server(**attributes))
        except CloudUnavailable as problem:
            return wait_for_begin(
                lambda: self.look_for(wanted.name, wanted.token, wanted.project or self.access.project),
                lambda found: found is not None,
                problem,
                f"Creating instance {wanted.name}",
                checkpoint,
            )

    def withdraw(self, server: str, what: str, checkpoint: Checkpoint) -> OperationFailed | NoValidHost:
        """Delete a server that Nova could not build, and return what it says about that."""
        reason = self.access.read(lambda cloud: read_fault(cloud, server))
        self.delete_server(server, checkpoint)
        return judge_failure(what, reason)

    def delete_server(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        self.look(server, self.access.read)
        what = f"Deleting instance {server}"
        try:
            self.access.read(lambda cloud: delete(cloud, server), ServerNotFound(server))
            found = wait_until(lambda: self.look(server), is_deleted, what, checkpoint)
        except ServerNotFound:
            return record_server_gone(server)
        if found.status == BROKEN:
            raise self.failed(what, server)
        return record_server_gone(server)

    def reboot_server(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        """A guest that runs may end by itself. Nova reboots all others hard, or refuses to."""
        found, what = self.find_built(server), f"Rebooting instance {server}"
        kind = "SOFT" if found.status == RUNNING else "HARD"
        after = self.repair(found, "reboot", lambda cloud: cloud.compute.reboot_server(server, kind), what, checkpoint)
        self.require_success(after, what, RUNNING)

    def rebuild_server(self, server: str, image: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        found, what = self.find_built(server), f"Rebuilding instance {server}"
        wanted = image or image_of(found)
        if wanted is None:
            raise OperationRefused(f"Instance {server} boots from a volume: say from which image to rebuild it")
        if wanted != image_of(found):
            require_usable_image(wanted, self.access, found.project_id)
        after = self.repair(
            found, "rebuild", lambda cloud: cloud.compute.rebuild_server(server, wanted), what, checkpoint
        )
        self.require_success(after, what, RUNNING, STOPPED)
        record_server_well(server)

    def find_built(self, server: str) -> Any:
        """Raises: `OperationRefused` where there is nothing yet that could be repaired: Nova calls it in conflict."""
        found = self.look(server, self.access.read)
        if found.status == BROKEN and not found.launched_at:
            raise OperationRefused(f"Instance {server} was never built: it can only be created again")
        return found

    def repair(
        self, found: Any, verb: str, begin: Callable[[Connection], Any], what: str, checkpoint: Checkpoint
    ) -> CloudServer:
        """Begin a repair and wait for its end; or just wait, where an earlier attempt at this work began it.

        Nova's task states of a repair begin with its verb.
        """
        before = self.describe(found)
        if (before.task_state or "").startswith(verb) and is_marked(Server, before.uuid):
            return self.reconcile(before.uuid, checkpoint)
        require_no_task(before)
        return self.carry_out(before, begin, what, checkpoint)

    def require_success(self, server: CloudServer, what: str, *statuses: str) -> None:
        """A repair may fail and leave a server in the status that it was in: what Nova notes about it tells."""
        reason = find_reason(self.access, server.uuid)
        if reason or server.status not in statuses:
            raise judge_failure(what, reason or f"it is in status {server.status}")


def attributes_of(properties: Mapping[str, Any], access: Access) -> dict[str, Any]:
    """Return the properties of a server as openstacksdk takes them; Nova chooses networks that are not named.

    Raises:
        OperationRefused: there is no network of a name.
    """
    networks = properties.get("networks", "auto")
    given: dict[str, Any] = {name: properties[name] for name in AS_THEY_ARE if name in properties}
    if "security_groups" in properties:
        given["security_groups"] = [{"name": name} for name in properties["security_groups"]]
    if "user_data" in properties:
        given["user_data"] = encode(properties["user_data"])
    if ENCODED_USER_DATA in properties:
        given["user_data"] = properties[ENCODED_USER_DATA]
    if devices := properties.get("block_device_mapping_v2"):
        given["block_device_mapping"] = [device_of(device) for device in devices]
    given["networks"] = networks if isinstance(networks, str) else [network_of(one, access) for one in networks]
    return given


def network_of(wanted: Mapping[str, str], access: Access) -> dict[str, str]:
    if "port" in wanted:
        return {"port": wanted["port"]}
    address = {"fixed_ip": wanted["fixed_ip"]} if "fixed_ip" in wanted else {}
    return {"uuid": find_network(wanted["network"], access), **address}


def find_network(network: str, access: Access) -> str:
    """Return the id of a network by its id or its name: Nova takes ids alone. Raises: `OperationRefused`."""
    if parse_uuid(network):
        return network
    # An administrator sees the networks of all projects.
    seen = access.read(lambda cloud: list(cloud.network.networks(name=network)))
    found = [one for one in seen if one.is_shared or one.project_id in (None, access.project)]
    if len(found) != 1:
        number = "more than one network" if found else "no network"
        raise OperationRefused(f"The project has {number} {network}")
    return str(found[0].id)


def delete(cloud: Connection, server: str) -> None:
    """Request the deletion of a server; Nova accepts this repeatedly until the server is gone."""
    cloud.compute.delete_server(server, ignore_missing=False)


def is_built(server: Any) -> bool:
    return server.status != BUILDING and server.task_state is None


def is_deleted(server: Any) -> bool:
    """Return whether a deletion has ended: a server that Nova could not delete is in ERROR without a task."""
    return server.status in GONE or (server.status == BROKEN and server.task_state is None)


def properties_of(server: Any) -> dict[str, Any]:
    """Return what Nova tells of the properties that a server without host was requested with.

    It tells no networks, and no scheduler hints but the server group.
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
