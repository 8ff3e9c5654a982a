"""A synchronization of 2,000 servers on 50 hypervisors: copies of one server and one node in the tables of Nova."""
# ruff: noqa: S608 (all of its SQL consists of constants)

from collections import Counter
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
import requests

from cluster.models import ComputeNode, Server
from cluster.operations.synchronization import synchronize
from tests.openstack import configuration
from tests.openstack.configuration import COMPUTE_NODES, PORTS
from tests.openstack.conftest import Nova
from tests.openstack.control_plane import ControlPlane

pytestmark = pytest.mark.openstack
SERVERS, NODES, PAGE = 2000, 50, 1000
COPIED_NODES = NODES - len(COMPUTE_NODES)
SERVER_KEY = "CONCAT('feedface-0000-4000-8000-', LPAD(LOWER(HEX(seq)), 12, '0'))"
NODE_KEY = "CONCAT('feedf00d-0000-4000-8000-', LPAD(LOWER(HEX(seq)), 12, '0'))"
NODE_NAME = "CONCAT('many-', seq)"
# The node of each server.
PLACE = f"CONCAT('many-', 1 + seq MOD {COPIED_NODES})"
INVENTORY = "resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio"
# The tables of a server, with the column of its UUID, and those of a node, with the column of its name.
SERVER_TABLES = {
    "nova.instances": "uuid",
    "nova.instance_extra": "instance_uuid",
    "nova.instance_info_caches": "instance_uuid",
    "nova.instance_system_metadata": "instance_uuid",
    "nova_api.instance_mappings": "instance_uuid",
}
NODE_TABLES = {
    "nova.services": "host",
    "nova.compute_nodes": "host",
    "nova_api.host_mappings": "host",
    "placement.resource_providers": "name",
}


def copy(table: str, where: str, number: int, **changed: str) -> list[str]:
    """Return the statements that copy rows ``number`` times, with expressions for the changed columns."""
    schema, name = table.split(".")
    kept = ", ".join(f"'{column}'" for column in ("id", *changed))
    columns = (
        "SELECT GROUP_CONCAT(CONCAT('`', column_name, '`')) FROM information_schema.columns"
        f" WHERE table_schema = '{schema}' AND table_name = '{name}' AND column_name NOT IN ({kept})"
    )
    insertion = f"INSERT INTO {table} ({', '.join(changed)}, @) SELECT {', '.join(changed.values())}, @"
    source = f"FROM (SELECT * FROM {table} WHERE {where}) AS one JOIN nova.seq_1_to_{number}"
    statement = f"{insertion} {source}".replace("'", "''")
    return [
        f"SET @statement = REPLACE('{statement}', '@', ({columns}))",
        "PREPARE copy FROM @statement",
        "EXECUTE copy",
    ]


def copy_node(host: str) -> list[str]:
    hosts = {"host": NODE_NAME}
    return [
        *copy("nova.services", f"host = '{host}'", COPIED_NODES, uuid=NODE_KEY, **hosts),
        *copy(
            "nova.compute_nodes",
            f"host = '{host}'",
            COPIED_NODES,
            uuid=NODE_KEY,
            hypervisor_hostname=NODE_NAME,
            **hosts,
        ),
        *copy("nova_api.host_mappings", f"host = '{host}'", COPIED_NODES, **hosts),
        *copy("placement.resource_providers", f"name = '{host}'", COPIED_NODES, uuid=NODE_KEY, name=NODE_NAME),
        f"INSERT INTO placement.inventories (resource_provider_id, {INVENTORY}) SELECT copied.id, {INVENTORY}"
        " FROM placement.resource_providers AS copied, placement.inventories AS one"
        " JOIN placement.resource_providers AS source ON source.id = one.resource_provider_id"
        f" WHERE source.name = '{host}' AND copied.name LIKE 'many-%'",
    ]


def copy_server(server: str) -> list[str]:
    statements = []
    for table, column in SERVER_TABLES.items():
        places = {"host": PLACE, "node": PLACE} if table == "nova.instances" else {}
        statements += copy(table, f"{column} = '{server}'", SERVERS - 1, **{column: SERVER_KEY}, **places)
    return statements


@pytest.fixture
def crowded(nova: Nova, control_plane: ControlPlane) -> Iterator[None]:
    """A cloud of `SERVERS` and `NODES`, with the default page size of Nova."""
    server = nova.boot("web", "cmp3")
    sections = configuration.nova(control_plane.folder)
    file = control_plane.files / "nova" / "nova.conf"
    configuration.write(file, {**sections, "api": {**sections["api"], "max_limit": PAGE}})
    control_plane.stop("nova-api")
    control_plane.query(
        "SET FOREIGN_KEY_CHECKS = 0, group_concat_max_len = 65536", *copy_node("cmp3"), *copy_server(server)
    )
    control_plane.start(["nova-api"])
    yield
    control_plane.query(
        "SET FOREIGN_KEY_CHECKS = 0",
        "DELETE FROM placement.inventories WHERE resource_provider_id IN"
        " (SELECT id FROM placement.resource_providers WHERE name LIKE 'many-%')",
        *(f"DELETE FROM {table} WHERE {column} LIKE 'feedface-%'" for table, column in SERVER_TABLES.items()),
        *(f"DELETE FROM {table} WHERE {column} LIKE 'many-%'" for table, column in NODE_TABLES.items()),
    )
    configuration.write(file, sections)
    control_plane.stop("nova-api")
    control_plane.start(["nova-api"])


@pytest.fixture
def requested(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, str]]:
    """The number of requests by service and first part of the path, counted from the start of the fixture."""
    names = {port: name for name, port in PORTS.items()}
    send, found = requests.Session.send, Counter()

    def count(self: requests.Session, request: requests.PreparedRequest, **options: object) -> requests.Response:
        address = urlsplit(request.url)
        found[names[address.port], address.path.removeprefix("/v2.1").strip("/").split("/")[0]] += 1
        return send(self, request, **options)

    monkeypatch.setattr(requests.Session, "send", count)
    return found


def test_synchronization_sends_a_request_for_each_page_and_hypervisor_but_not_for_each_server(
    crowded: None, requested: Counter[tuple[str, str]]
) -> None:
    synchronize()
    assert (Server.objects.present().count(), ComputeNode.objects.present().count()) == (SERVERS, NODES)
    # Nova refers to another page after each full one, so that the last page is empty.
    assert requested["nova-api", "servers"] == SERVERS // PAGE + 1
    assert requested["placement", "resource_providers"] == 1 + NODES
    assert requested.total() < NODES + 30, requested
