"""Find the availability zone of a server, a node or a volume."""

from uuid import UUID

from cluster.models import ComputeNode, Server, Volume


def find_zone(target: str | None) -> str | None:
    """Return the zone of the object with this UUID, or of the node with this host name, if there is one."""
    try:
        uuid = UUID(target or "")
    except ValueError:
        return ComputeNode.objects.present().filter(hostname=target).values_list("zone", flat=True).first()
    servers = Server.objects.present().filter(uuid=uuid).order_by().values_list("node__zone", flat=True)
    nodes = ComputeNode.objects.present().filter(uuid=uuid).order_by().values_list("zone", flat=True)
    volumes = Volume.objects.present().filter(uuid=uuid).order_by().values_list("pool__storage_node__zone", flat=True)
    return next(iter(servers.union(nodes, volumes)), None)
