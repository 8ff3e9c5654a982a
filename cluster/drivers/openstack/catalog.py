"""Registration of the site in Keystone: its services and endpoints in the catalog, and its user."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.crypto import get_random_string
from openstack.connection import Connection

from watcher_site.refusals import Conflict, NotFound

PASSWORD_LENGTH = 32


@dataclass(frozen=True)
class CatalogEntry:
    """A service of the catalog, with the path of its API on the site.

    Keystone replaces ``%(project_id)s`` in the path with the project of each token.
    """

    type: str
    name: str
    path: str = ""


def site_entries(name: str, orchestration: str | None, compute: str | None) -> list[CatalogEntry]:
    """Return the entries of the site: Watcher's API, and the orchestration and compute APIs with a service type."""
    entries = [CatalogEntry("infra-optim", name)]
    if orchestration:
        entries.append(CatalogEntry(orchestration, f"{name}-orchestration", "/orchestration/v1/%(project_id)s"))
    if compute:
        entries.append(CatalogEntry(compute, f"{name}-compute", "/compute/v2.1"))
    return entries


def choose_region(cloud: Connection, name: str | None) -> str:
    """Return the region with this name; without a name, the region of ``clouds.yaml`` or the only one.

    Raises:
        NotFound: there is no such region, or the choice is ambiguous.
    """
    identity: Any = cloud.identity
    region_ids = sorted(region.id for region in identity.regions())
    region_id = name or cloud.config.get_region_name() or (region_ids[0] if len(region_ids) == 1 else None)
    if region_id is None:
        raise NotFound(f"--region: Keystone has {len(region_ids)} regions. It must be one of {', '.join(region_ids)}.")
    if region_id not in region_ids:
        raise NotFound(f"--region: Keystone has no region {region_id}. It must be one of {', '.join(region_ids)}.")
    return str(region_id)


def register_endpoints(
    cloud: Connection, entries: Iterable[CatalogEntry], url: str, region: str, interfaces: Iterable[str]
) -> Iterator[str]:
    """Create missing services and endpoints, and change endpoints with another URL; yield a line for each.

    Raises:
        Conflict: a service of the same type does not belong to the site.
    """
    identity: Any = cloud.identity
    services = [(entry, find_service(identity, entry)) for entry in entries]
    for entry, service in services:
        if service is None:
            service = identity.create_service(type=entry.type, name=entry.name, is_enabled=True)
            yield f"service {entry.name} ({entry.type}): created"
        else:
            yield f"service {entry.name} ({entry.type}): unchanged"
        for interface in interfaces:
            address = f"{url.rstrip('/')}{entry.path}"
            change = register_endpoint(identity, service, interface, region, address)
            yield f"{interface} endpoint {address} of {entry.name} in {region}: {change}"


def find_service(identity: Any, entry: CatalogEntry) -> Any:
    """Return the service of an entry, or None.

    Raises:
        Conflict: there are services of this type, but none with this name.
    """
    services = list(identity.services(type=entry.type))
    matches = [service for service in services if service.name == entry.name]
    if services and not matches:
        raise Conflict(
            f"The catalog has the service {services[0].name} of type {entry.type} already. Nothing was changed."
        )
    return matches[0] if matches else None


def register_endpoint(identity: Any, service: Any, interface: str, region: str, url: str) -> str:
    """Create or change an endpoint, and describe the change."""
    endpoints = list(identity.endpoints(service_id=service.id, interface=interface, region_id=region))
    if any(endpoint.url == url and endpoint.is_enabled for endpoint in endpoints):
        return "unchanged"
    if endpoints:
        former = endpoints[0].url
        identity.update_endpoint(endpoints[0], url=url, is_enabled=True)
        return f"changed from {former}" if former != url else "enabled"
    identity.create_endpoint(service_id=service.id, interface=interface, region_id=region, url=url, is_enabled=True)
    return "created"


def find_domain(cloud: Connection, name: str) -> Any:
    """Return the domain with this name or id. Raises: `NotFound`."""
    identity: Any = cloud.identity
    domain = identity.find_domain(name)
    if domain is None:
        raise NotFound(f"--domain: Keystone has no domain {name}.")
    return domain


def find_roles(cloud: Connection, names: Iterable[str]) -> list[Any]:
    """Return the roles with these names. Raises: `NotFound`."""
    identity: Any = cloud.identity
    roles = {role.name: role for role in identity.roles()}
    for name in names:
        if name not in roles:
            raise NotFound(f"--role: Keystone has no role {name}. It must be one of {', '.join(sorted(roles))}.")
    return [roles[name] for name in names]


def register_user(
    cloud: Connection, name: str, domain: Any, project: str, roles: Iterable[Any], password: str
) -> Iterator[str]:
    """Create the user of the site if it is missing, and assign roles in a project; yield a line for each.

    The password of an existing user does not change.

    Args:
        password: for a new user; if empty, a random one is set and shown in a line.
    """
    identity: Any = cloud.identity
    keystone_project = identity.find_project(project, domain_id=domain.id)
    if keystone_project is None:
        keystone_project = identity.create_project(name=project, domain_id=domain.id)
        yield f"project {project}: created"
    user = identity.find_user(name, domain_id=domain.id)
    if user is None:
        new_password = password or get_random_string(PASSWORD_LENGTH)
        user = identity.create_user(
            name=name, domain_id=domain.id, password=new_password, default_project_id=keystone_project.id
        )
        yield f"user {name}: created" + ("" if password else f", password {new_password} (shown this once)")
    else:
        yield f"user {name}: unchanged" + (", WATCHER_USER_PASSWORD is ignored" if password else "")
    for role in roles:
        is_given = identity.validate_user_has_project_role(keystone_project, user, role)
        if not is_given:
            identity.assign_project_role_to_user(keystone_project, user, role)
        yield f"role {role.name} of {name} in {project}: {'unchanged' if is_given else 'given'}"
