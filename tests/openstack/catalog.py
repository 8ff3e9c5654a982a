"""Create the projects, users, roles and endpoints of the control plane in its Keystone, and a shared network."""

from typing import Any

import openstack

from tests.openstack.configuration import PASSWORD, URLS

NETWORK = "net"
ENDPOINTS = {
    "placement": ("placement", URLS["placement"]),
    "glance": ("image", URLS["glance"]),
    "nova": ("compute", f"{URLS['nova-api']}/v2.1"),
    "neutron": ("network", URLS["neutron"]),
    "cinder": ("block-storage", f"{URLS['cinder-api']}/v3"),
}


def main() -> None:
    identity = openstack.connect(cloud="admin").identity
    roles = {role.name: role for role in identity.roles()}
    for name in {"admin", "service", "member"} - roles.keys():
        roles[name] = identity.create_role(name=name)
    service, demo = (find_or_create(identity, "project", name, domain_id="default") for name in ("service", "demo"))
    for name in ("nova", "placement", "glance", "neutron", "cinder", "watcher"):
        grant(identity, name, service, roles["admin"], roles["service"])
    grant(identity, "member", demo, roles["member"])
    for name, (kind, url) in ENDPOINTS.items():
        found = find_or_create(identity, "service", name, type=kind)
        if not list(identity.endpoints(service_id=found.id)):
            identity.create_endpoint(service_id=found.id, interface="public", region_id="RegionOne", url=url)
    create_network()


def create_network() -> None:
    network = openstack.connect(cloud="admin").network
    if network.find_network(NETWORK) is None:
        made = network.create_network(name=NETWORK, is_shared=True)
        network.create_subnet(network_id=made.id, ip_version=4, cidr="10.0.0.0/16", is_dhcp_enabled=False)


def grant(identity: Any, name: str, project: Any, *roles: Any) -> None:
    user = find_or_create(identity, "user", name, domain_id="default", password=PASSWORD)
    for role in roles:
        identity.assign_project_role_to_user(project, user, role)


def find_or_create(identity: Any, kind: str, name: str, **attributes: Any) -> Any:
    return getattr(identity, f"find_{kind}")(name) or getattr(identity, f"create_{kind}")(name=name, **attributes)


if __name__ == "__main__":
    main()
