"""Clouds in memory, of any size: nodes with ten servers each on average, which use little of their capacity."""

from random import Random
from uuid import UUID

from cluster.snapshot import ClusterSnapshot, NodeSnapshot, ServerSnapshot

SEED = 2012
SERVERS_OF_A_NODE = 10
VCPUS, MEMORY, DISK = 16, 65_536, 1000
GIB = 1024


def cloud(nodes: int) -> ClusterSnapshot:
    """Return a cloud with measurements of its servers for all strategies; the result is the same for each call."""
    chance = Random(SEED)  # noqa: S311 (chance, no secret)
    made = [make_node(number, chance) for number in range(nodes)]
    use = {str(server.uuid): chance.betavariate(1, 6) * 100 for node in made for server in node.servers}
    names = ("instance_cpu_usage", "use", "now")
    return ClusterSnapshot({node.hostname: node for node in made}, measurements=dict.fromkeys(names, use))


def crowded(nodes: int, waiting: int) -> ClusterSnapshot:
    """Return a cloud whose nodes are full or nearly full, so that pending servers require migrations.

    Each fifth node has a server that may be deleted. Some of the pending servers are larger than any node.
    """
    chance = Random(SEED)  # noqa: S311 (chance, no secret)
    made = [make_node(number, chance) for number in range(nodes)]
    for number, node in enumerate(made):
        node.servers = []
        while node.free_memory >= 4 * GIB:
            server = make_server(number, len(node.servers), chance)
            server.memory = min(
                chance.choice([1, 2, 4, 8, 16]) * GIB, int(node.free_memory) - chance.randint(0, 3) * GIB
            )
            node.servers.append(server)
        if number % 5 == 0:
            node.servers[0].metadata["preemptible"] = "delete"
    wanted = [make_server(nodes + number, 0, chance) for number in range(waiting)]
    for server in wanted:
        server.state, server.memory = "pending", chance.choice([4, 8, 16, 24, 32, 128]) * GIB
    return ClusterSnapshot({node.hostname: node for node in made}, waiting=wanted)


def make_node(number: int, chance: Random) -> NodeSnapshot:
    servers = [make_server(number, position, chance) for position in range(chance.randint(0, 2 * SERVERS_OF_A_NODE))]
    return NodeSnapshot(
        uuid=UUID(int=number),
        hostname=f"compute-{number:05}",
        status="enabled",
        disabled_reason=None,
        state="up",
        vcpus=VCPUS,
        vcpu_reserved=0,
        vcpu_ratio=4.0,
        memory=MEMORY,
        memory_mb_reserved=0,
        memory_ratio=1.0,
        disk=DISK,
        disk_gb_reserved=0,
        disk_ratio=1.0,
        capacity_vcpus=4.0 * VCPUS,
        capacity_memory=MEMORY,
        capacity_disk=DISK,
        servers=servers,
    )


def make_server(number: int, position: int, chance: Random) -> ServerSnapshot:
    return ServerSnapshot(
        uuid=UUID(int=(number + 1) * 1_000_000 + position),
        name=f"server-{number:05}-{position:02}",
        state="active",
        vcpus=chance.choice([1, 2, 4]),
        memory=chance.choice([1024, 2048, 4096]),
        disk=10,
        metadata={},
        project_id="",
        locked=False,
        pinned_az="",
        flavor_extra_specs={},
    )
