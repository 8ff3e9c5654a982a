"""A scope narrows the part of the cloud that an audit looks at."""

from typing import Any

import pytest

from audits.scope import check_scope, narrow
from cluster.snapshot import ClusterSnapshot
from tests.builders import make_node, make_server
from watcher_site.refusals import Invalid


def excluding(**rule: Any) -> list[Any]:
    return [{"compute": [{"exclude": [rule]}]}]


def narrowed(scope: list[Any]) -> dict[str, bool]:
    """Return the servers of a small cloud that a scope leaves, each with whether it is excluded."""
    node, other = make_node("compute1"), make_node("compute2")
    make_server("web-1", node, project_id="blue", metadata={"optimize": "No"})
    make_server("web-2", other, project_id="green", uuid="aaaaaaaa-0000-4000-8000-000000000000")
    return {server.name: server.watcher_exclude for server in narrow(ClusterSnapshot.load(), scope).servers}


FULL: list[Any] = [
    {
        "compute": [
            {"host_aggregates": [{"id": 1}, {"name": "ssd"}]},
            {"availability_zones": [{"name": "az1"}, {"name": "az2"}]},
            {
                "exclude": [
                    {"instances": [{"uuid": "x"}]},
                    {"compute_nodes": [{"name": "compute1"}]},
                    {"instance_metadata": [{"optimize": "no"}]},
                    {"projects": [{"uuid": "y"}]},
                ]
            },
        ]
    },
    {
        "storage": [
            {"availability_zones": [{"name": "az1"}]},
            {"volume_types": [{"name": "lvm"}]},
            {"exclude": [{"storage_pools": [{"name": "h@b#p"}]}, {"volumes": [{"uuid": "v"}]}]},
        ]
    },
]


@pytest.mark.parametrize(
    "scope",
    [[], FULL, [{"exclude": [{"projects": [{"uuid": "y"}]}]}], [{"compute": [{"host_aggregates": [{"id": "*"}]}]}]],
    ids=["empty", "full", "bare rules", "any aggregate"],
)
def test_a_sound_scope_is_accepted(scope: list[Any]) -> None:
    check_scope(scope)


@pytest.mark.parametrize(
    ("scope", "rule"),
    [
        ({"compute": []}, "scope: must be a list."),
        (["compute"], r"scope\[0\]: 'compute' is not of type 'object'"),
        ([{"compute": [{"racks": []}]}], r"scope\[0\].compute\[0\]: Additional properties"),
        ([{"compute": [{"host_aggregates": [{"id": "1"}]}]}], r"scope\[0\].compute\[0\].host_aggregates\[0\].id"),
        ([{"compute": []}, {"compute": []}], "scope: must not hold compute twice."),
        ([{"storage": []}], "scope: must hold compute beside storage."),
        ([{"compute": [{"exclude": [{"projects": [{"uuid": "\0"}]}]}]}], "must not hold NUL characters"),
        (
            [{"compute": [{"availability_zones": [{"name": "*"}, {"name": "az1"}]}]}],
            r"scope: '\*' must stand alone in availability_zones.",
        ),
        (
            [{"compute": [{"host_aggregates": [{"id": 1}]}, {"exclude": [{"host_aggregates": [{"id": 2}]}]}]}],
            "host_aggregates can't be included and excluded together",
        ),
    ],
)
def test_nonsense_is_refused(scope: Any, rule: str) -> None:
    with pytest.raises(Invalid, match=rule):
        check_scope(scope)


@pytest.mark.django_db
def test_an_excluded_node_leaves_with_its_servers() -> None:
    assert narrowed(excluding(compute_nodes=[{"name": "compute1"}])) == {"web-2": False}


@pytest.mark.django_db
def test_servers_of_an_excluded_project_stay_and_are_marked() -> None:
    assert narrowed(excluding(projects=[{"uuid": "blue"}])) == {"web-1": True, "web-2": False}


@pytest.mark.django_db
def test_an_excluded_server_stays_and_is_marked() -> None:
    scope = excluding(instances=[{"uuid": "AAAAAAAA-0000-4000-8000-000000000000"}])
    assert narrowed(scope) == {"web-1": False, "web-2": True}


@pytest.mark.django_db
def test_servers_with_excluded_metadata_stay_and_are_marked() -> None:
    assert narrowed(excluding(instance_metadata=[{"optimize": "no"}])) == {"web-1": True, "web-2": False}


@pytest.mark.django_db
def test_rules_without_compute_around_them_are_about_compute() -> None:
    assert narrowed([{"exclude": [{"projects": [{"uuid": "blue"}]}]}]) == {"web-1": True, "web-2": False}


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["host_aggregates", "availability_zones"])
def test_a_scope_by_what_the_cloud_does_not_know_is_refused(kind: str) -> None:
    with pytest.raises(Invalid, match=f"The scope asks for {kind}, which this cloud does not know"):
        narrowed([{"compute": [{kind: [{"name": "fast"}]}]}])
