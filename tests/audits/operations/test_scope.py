"""Validation of the scope of an audit."""

from typing import Any

import pytest

from audits.operations.scope import check_scope
from watcher_site.refusals import Invalid

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
def test_valid_scope_is_accepted(scope: list[Any]) -> None:
    check_scope(scope)


@pytest.mark.parametrize(
    ("scope", "rule"),
    [
        ({"compute": []}, "scope: must be a list."),
        (["compute"], r"scope\[0\]: 'compute' is not of type 'object'"),
        ([{"compute": [{"racks": []}]}], r"scope\[0\].compute\[0\]: Additional properties"),
        ([{"compute": [{"host_aggregates": [{"id": "1"}]}]}], r"scope\[0\].compute\[0\].host_aggregates\[0\].id"),
        ([{"compute": []}, {"compute": []}], "scope: must not contain compute twice."),
        ([{"storage": []}], "scope: must contain compute besides storage."),
        ([{"compute": [{"exclude": [{"projects": [{"uuid": "\0"}]}]}]}], "must not contain NUL characters"),
        (
            [{"compute": [{"availability_zones": [{"name": "*"}, {"name": "az1"}]}]}],
            r"scope: '\*' must stand alone in availability_zones.",
        ),
        (
            [{"compute": []}, {"storage": [{"volume_types": [{"name": "fast"}, {"name": "*"}]}]}],
            r"scope: '\*' must stand alone in volume_types.",
        ),
        (
            [{"compute": [{"host_aggregates": [{"id": 1}]}, {"exclude": [{"host_aggregates": [{"id": 2}]}]}]}],
            "host_aggregates can't be included and excluded together",
        ),
    ],
)
def test_invalid_scope_is_refused_with_the_place_and_the_rule(scope: Any, rule: str) -> None:
    with pytest.raises(Invalid, match=rule):
        check_scope(scope)
