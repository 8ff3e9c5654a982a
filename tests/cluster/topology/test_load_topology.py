"""The command load_topology fills the embedded cloud in one transaction, and reports errors with their line."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from cluster.models import ComputeNode, Server
from tests.builders import make_node, make_server
from tests.processes import start_command

NODE = {"hostname": "compute1", "vcpus": 16, "memory": 32768, "disk": 500}
SERVER = {"name": "web-1", "node": "compute1", "vcpus": 2, "memory": 2048, "disk": 20}
UUID = "11111111-2222-4333-8444-555555555555"

pytestmark = pytest.mark.django_db


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "topology.json"


def load(file: Path, *, nodes: Any = (NODE,), servers: Any = (SERVER,)) -> None:
    file.write_text(json.dumps({"compute_nodes": list(nodes), "servers": list(servers)}, indent=2))
    call_command("load_topology", str(file))


def refusal(file: Path, content: str | bytes) -> str:
    """Load an invalid file, and return the error message after the name of the file."""
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CommandError) as problem:
        call_command("load_topology", str(file))
    assert (problem.value.returncode, ComputeNode.objects.exists(), Server.objects.exists()) == (2, False, False)
    return str(problem.value).removeprefix(f"{file}:")


def rows() -> list[Any]:
    return [*ComputeNode.objects.order_by("pk").values(), *Server.objects.order_by("pk").values()]


def test_nodes_and_servers_are_created(file: Path) -> None:
    load(file)
    server = Server.objects.get()
    assert (server.name, server.node.hostname, server.state) == ("web-1", "compute1", "active")


def test_all_server_attributes_are_loaded(file: Path) -> None:
    attributes = {"metadata": {"a": "b"}, "project_id": "blue", "locked": True, "pinned_az": "az1", "uuid": UUID}
    load(file, servers=[{**SERVER, **attributes, "flavor_extra_specs": {"x": "y"}, "state": "stopped"}])
    server = Server.objects.get()
    assert {name: getattr(server, name) for name in ("metadata", "project_id", "locked", "pinned_az")} == {
        "metadata": {"a": "b"},
        "project_id": "blue",
        "locked": True,
        "pinned_az": "az1",
    }


def test_reloading_an_unchanged_file_changes_nothing(file: Path) -> None:
    load(file)
    before = rows()
    load(file)
    assert rows() == before


def test_reloading_a_changed_file_updates_the_changed_rows(file: Path) -> None:
    load(file)
    load(file, servers=[{**SERVER, "vcpus": 4}])
    assert (Server.objects.get().vcpus, Server.objects.get().updated_at is None) == (4, False)


def test_omitted_attribute_keeps_its_value(file: Path) -> None:
    load(file, nodes=[{**NODE, "status": "disabled"}])
    load(file)
    assert ComputeNode.objects.get().status == "disabled"


def test_omitted_objects_are_kept(file: Path) -> None:
    make_server("old", make_node("compute9"))
    load(file)
    assert (ComputeNode.objects.count(), Server.objects.count()) == (2, 2)


def test_server_is_placed_on_an_existing_node(file: Path) -> None:
    make_node("compute9")
    load(file, servers=[{**SERVER, "node": "compute9"}])
    assert Server.objects.get().node.hostname == "compute9"


def test_server_without_a_node_is_not_scheduled(file: Path) -> None:
    load(file, servers=[{**SERVER, "node": None}])
    assert Server.objects.get().node is None


def test_pending_server_has_no_node(file: Path) -> None:
    load(file, servers=[{**SERVER, "node": None, "state": "pending"}])
    assert Server.objects.waiting().get().name == "web-1"


@pytest.mark.parametrize("changes", [{"state": "pending"}, {"state": "pending", "node": "compute1"}])
def test_server_on_a_node_cannot_become_pending(file: Path, changes: dict[str, str]) -> None:
    make_server("web-1", make_node("compute1"))
    refused = r"servers\[0\]\.state: a server that is pending is on no node, and web-1 is on compute1\."
    with pytest.raises(CommandError, match=refused):
        load(file, servers=[{"name": "web-1", "vcpus": 2, "memory": 2048, "disk": 20, **changes}])
    assert Server.objects.get().state == "active"


def test_pending_server_cannot_be_placed_on_a_node(file: Path) -> None:
    make_server("web-1", node=None, state="pending")
    with pytest.raises(CommandError, match=r"servers\[0\]\.node: a server that is pending is on no node"):
        load(file)


def test_server_that_ran_before_cannot_become_pending(file: Path) -> None:
    make_server("web-1", node=None, state="error", launched_at=timezone.now())
    with pytest.raises(
        CommandError, match=r"servers\[0\]\.state: a server that is pending has never run, and web-1 has"
    ):
        load(file, servers=[{**SERVER, "node": None, "state": "pending"}])


def test_node_with_a_known_uuid_is_renamed(file: Path) -> None:
    load(file, nodes=[{**NODE, "uuid": UUID}])
    load(file, nodes=[{**NODE, "uuid": UUID, "hostname": "compute2"}], servers=[])
    assert ComputeNode.objects.get().hostname == "compute2"


def test_deleted_server_with_a_known_uuid_is_restored(file: Path) -> None:
    load(file, servers=[{**SERVER, "uuid": UUID}])
    Server.objects.soft_delete()
    load(file, servers=[{**SERVER, "uuid": UUID}])
    assert Server.objects.present().count() == 1


@pytest.mark.postgresql  # On SQLite Django sends at most 999 values per query, and therefore more queries.
def test_large_file_is_loaded_with_at_most_15_queries(file: Path, django_assert_max_num_queries: Any) -> None:
    with django_assert_max_num_queries(15):
        load(
            file,
            servers=[{**SERVER, "name": f"web-{number}", "vcpus": 0, "memory": 1, "disk": 1} for number in range(400)],
        )


HEAD = '{"compute_nodes": [\n{"hostname": "compute1", "vcpus": 4, "memory": 4096, "disk": 100}],\n"servers": [\n'
TAIL = "]}\n"


def servers(*lines: str) -> str:
    return HEAD + ",\n".join(lines) + TAIL


SMALL = '{"name": "web-1", "vcpus": 1, "memory": 1, "disk": 1, "node": "compute1"}'


@pytest.mark.parametrize(
    ("content", "refused"),
    [
        ("", "1: is not JSON: Expecting value."),
        ("{\n\n nothing", "3: is not JSON: Expecting property name enclosed in double quotes."),
        ("[]", "1: [] is not of type 'object'."),
        (b'{\n"servers": "\xff"}', "2: is not UTF-8 text."),
        (b'{\n"servers": "\x00"}', "2: is not JSON: Invalid control character at."),
        ("[" * 100_000, "1: is nested too deeply."),
        ('{\n"racks": []}', "2: racks: is not an attribute of a topology."),
        ('{"servers":\n\n"none"}', "3: servers: 'none' is not of type 'array'."),
        (
            servers('{"name": "web-1",\n"colour": "red", "vcpus": 1, "memory": 1, "disk": 1}'),
            "5: servers[0].colour: is not an attribute of a server.",
        ),
        (
            servers(SMALL, '{"name": "web-2", "vcpus": 1, "memory": 1}'),
            "5: servers[1]: 'disk' is a required property.",
        ),
        (servers(SMALL, SMALL), "5: servers[1].name: web-1 is that of servers[0], too."),
        (servers(SMALL.replace("compute1", "compute9")), "4: servers[0].node: there is no compute node compute9."),
        (servers(SMALL.replace('"vcpus": 1', '"vcpus":\n "1"')), "5: servers[0].vcpus: '1' is not of type 'integer'."),
        (servers(SMALL.replace('"vcpus": 1', '"vcpus": true')), "4: servers[0].vcpus: True is not of type 'integer'."),
        (
            servers(SMALL.replace('"vcpus": 1', '"vcpus": -1')),
            "4: servers[0].vcpus: -1 is less than the minimum of 0.",
        ),
        (
            servers(SMALL.replace('"vcpus": 1', f'"vcpus": {"9" * 5000}')),
            "4: servers[0].vcpus: must not contain infinite or undefined numbers.",
        ),
        (
            servers(SMALL.replace('"vcpus": 1', '"vcpus": NaN')),
            "4: servers[0].vcpus: must not contain infinite or undefined numbers.",
        ),
        (
            servers(SMALL.replace('"vcpus": 1', '"vcpus": 3000000000')),
            "4: servers[0].vcpus: 3000000000 is greater than the maximum of 2147483647.",
        ),
        (servers(SMALL.replace("web-1", "a\\u0000b")), "4: servers[0].name: must not contain NUL characters."),
        (servers(SMALL.replace("web-1", "\\ud800")), "4: servers[0].name: must not contain lone surrogates."),
        (servers(SMALL.replace("web-1", "")), "4: servers[0].name: '' should be non-empty."),
        (servers(SMALL.replace('"disk": 1', '"disk": 1,\n"disk": 2')), "5: servers[0].disk: is given twice."),
        (
            servers(SMALL.replace('"vcpus": 1', '"vcpus": 8')),
            "4: servers[0].vcpus: compute1 has a capacity of 4 in total, and its servers use 8.",
        ),
        (
            servers(*(SMALL.replace("web-1", f"web-{n}").replace('"vcpus": 1', '"vcpus": 2') for n in range(3))),
            "6: servers[2].vcpus: compute1 has a capacity of 4 in total, and its servers use 6.",
        ),
        (
            servers(SMALL.replace('"disk": 1', '"disk": 1, "state": "happy"')),
            "4: servers[0].state: 'happy' is not one of ['active', 'building', 'paused', 'suspended', 'stopped', "
            "'rescued', 'resized', 'shelved', 'error', 'pending'].",
        ),
        (
            servers(SMALL.replace('"disk": 1', '"disk": 1,\n"state": "pending"')),
            "5: servers[0].state: a server that is pending is on no node, and web-1 is on compute1.",
        ),
        (
            servers(SMALL.replace('"disk": 1', '"disk": 1, "uuid": "x"')),
            "4: servers[0].uuid: 'x' does not match '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'.",
        ),
    ],
)
def test_invalid_file_is_refused_with_the_line(file: Path, content: str | bytes, refused: str) -> None:
    assert refusal(file, content) == refused


def test_missing_file_is_refused(file: Path) -> None:
    with pytest.raises(CommandError, match=r"topology\.json: cannot be read: No such file or directory"):
        call_command("load_topology", str(file))


def test_uuid_that_differs_from_the_uuid_of_the_named_server_is_refused(file: Path) -> None:
    load(file)
    with pytest.raises(CommandError, match=r"servers\[0\]\.name: web-1 stands in the cloud with the uuid"):
        load(file, servers=[{**SERVER, "uuid": UUID}])


def test_migrating_server_cannot_be_placed_on_another_node(file: Path) -> None:
    make_server("web-1", make_node("compute2"), destination=make_node("compute3"))
    with pytest.raises(CommandError, match=r"servers\[0\]\.node: web-1 is being migrated"):
        load(file)


def test_node_cannot_become_smaller_than_its_servers(file: Path) -> None:
    load(file)
    with pytest.raises(CommandError, match=r"compute_nodes\[0\]\.vcpus: compute1 has a capacity of 1 in total"):
        load(file, nodes=[{**NODE, "vcpus": 1}])


def test_refused_file_changes_nothing(file: Path) -> None:
    load(file)
    before = rows()
    with pytest.raises(CommandError):
        load(file, servers=[{**SERVER, "vcpus": 4}, {**SERVER, "name": "web-2", "node": "compute9"}])
    assert rows() == before


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_error_is_reported_in_one_line_with_status_2(file: Path) -> None:
    file.write_text('{"racks": []}')
    command = start_command("load_topology", str(file))
    _, errors = command.communicate()
    assert (command.returncode, errors.splitlines()[-1]) == (2, f"{file}:1: racks: is not an attribute of a topology.")
