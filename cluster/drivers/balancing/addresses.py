"""Look up the addresses of servers in the subnets of load balancers: fixed addresses in Neutron."""

from cluster.drivers.base import OperationRefused, ServerNotFound
from cluster.drivers.openstack.access import Access


def find_subnet(access: Access, subnet: str) -> str:
    """Return the id of a subnet that is named by it or by its name. Raises: `OperationRefused`."""
    access.require("network", "Neutron")
    found = access.read(lambda cloud: cloud.network.find_subnet(subnet))
    if found is None:
        raise OperationRefused(f"Subnet {subnet} not found")
    return str(found.id)


def find_addresses(access: Access, server: str, subnet: str | None = None) -> list[str]:
    """Return the fixed addresses of a server, on one subnet or on all. One that is gone has none."""
    access.require("network", "Neutron")
    ports = access.read(lambda cloud: list(cloud.network.ports(device_id=server)))
    fixed = [address for port in ports for address in port.fixed_ips]
    return [str(one["ip_address"]) for one in fixed if subnet in {None, one["subnet_id"]}]


def require_address(access: Access, server: str, subnet: str) -> str:
    """Return a server's address on a subnet.

    Raises:
        ServerNotFound, OperationRefused: there is no such server, or it has none.
    """
    addresses = find_addresses(access, server, subnet)
    if not addresses:
        access.read(lambda cloud: cloud.compute.get_server(server), ServerNotFound(server))
        raise OperationRefused(f"Instance {server} has no address on subnet {subnet}")
    return addresses[0]
