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
    known = sorted(region.id for region in identity.regions())
    chosen = name or cloud.config.get_region_name() or (known[0] if len(known) == 1 else None)
    if chosen is None:
        raise NotFound(f"--region: Keystone has {len(known)} regions. It must be one of {', '.join(known)}.")
    if chosen not in known:
        raise NotFound(f"--region: Keystone has no region {chosen}. It must be one of {', '.join(known)}.")
    return str(chosen)


def register_endpoints(
    cloud: Connection, entries: Iterable[CatalogEntry], url: str, region: str, interfaces: Iterable[str]
) -> Iterator[str]:
    """Create missing services and endpoints, and change endpoints with another URL; yield a line for each.

    Raises:
        Conflict: a service of the same type does not belong to the site.
    """
    identity: Any = cloud.identity
    chosen = [(entry, find_service(identity, entry)) for entry in entries]
    for entry, service in chosen:
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
    found = list(identity.services(type=entry.type))
    named = [service for service in found if service.name == entry.name]
    if found and not named:
        raise Conflict(
            f"The catalog has the service {found[0].name} of type {entry.type} already. Nothing was changed."
        )
    return named[0] if named else None


def register_endpoint(identity: Any, service: Any, interface: str, region: str, url: str) -> str:
    """Create or change an endpoint, and describe the change."""
    found = list(identity.endpoints(service_id=service.id, interface=interface, region_id=region))
    if any(endpoint.url == url and endpoint.is_enabled for endpoint in found):
        return "unchanged"
    if found:
        former = found[0].url
        identity.update_endpoint(found[0], url=url, is_enabled=True)
        return f"changed from {former}" if former != url else "enabled"
    identity.create_endpoint(service_id=service.id, interface=interface, region_id=region, url=url, is_enabled=True)
    return "created"


def find_domain(cloud: Connection, name: str) -> Any:
    """Return the domain with this name or id. Raises: `NotFound`."""
    identity: Any = cloud.identity
    found = identity.find_domain(name)
    if found is None:
        raise NotFound(f"--domain: Keystone has no domain {name}.")
    return found


def find_roles(cloud: Connection, names: Iterable[str]) -> list[Any]:
    """Return the roles with these names. Raises: `NotFound`."""
    identity: Any = cloud.identity
    known = {role.name: role for role in identity.roles()}
    for name in names:
        if name not in known:
            raise NotFound(f"--role: Keystone has no role {name}. It must be one of {', '.join(sorted(known))}.")
    return [known[name] for name in names]


def register_user(
    cloud: Connection, name: str, domain: Any, project: str, roles: Iterable[Any], password: str
) -> Iterator[str]:
    """Create the user of the site if it is missing, and assign roles in a project; yield a line for each.

    The password of an existing user does not change.

    Args:
        password: for a new user; if empty, a random one is set and shown in a line.
    """
    identity: Any = cloud.identity
    found = identity.find_project(project, domain_id=domain.id)
    if found is None:
        found = identity.create_project(name=project, domain_id=domain.id)
        yield f"project {project}: created"
    user = identity.find_user(name, domain_id=domain.id)
    if user is None:
        chosen = password or get_random_string(PASSWORD_LENGTH)
        user = identity.create_user(name=name, domain_id=domain.id, password=chosen, default_project_id=found.id)
        yield f"user {name}: created" + ("" if password else f", password {chosen} (shown this once)")
    else:
        yield f"user {name}: unchanged" + (", WATCHER_USER_PASSWORD is ignored" if password else "")
    for role in roles:
        is_given = identity.validate_user_has_project_role(found, user, role)
        if not is_given:
            identity.assign_project_role_to_user(found, user, role)
        yield f"role {role.name} of {name} in {project}: {'unchanged' if is_given else 'given'}"
