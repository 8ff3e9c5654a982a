"""Preflights agree with the execution, on generated small clouds and plans."""

from typing import Any
from uuid import UUID, uuid5

import pytest
from django.db import transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from actions.models import Action, ActionParent
from cluster.models import ComputeNode, Server, Volume
from plans.models import ActionPlan
from plans.preflight import preflight
from tests.builders import make_flavor, make_node, make_plan, make_pool, make_server, make_volume, make_volume_type
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db

Step = tuple[str, dict[str, Any]]

FLAVORS = {"small": 1024, "large": 2048, "flat": 1024}
POOLS = ["a@lvm#one", "b@lvm#one", "b@lvm#two"]
# No object has the last number.
NUMBERS = (0, 0, 0, 0, 1, 1, 1, 2, 2, 3)


def uuid(kind: str, number: int) -> UUID:
    return uuid5(UUID(int=0), f"{kind}-{number}")


def named(kind: str) -> st.SearchStrategy[str]:
    return st.sampled_from([str(uuid(kind, number)) for number in NUMBERS])


hosts = st.sampled_from([f"node-{number}" for number in NUMBERS])
clouds = st.fixed_dictionaries(
    {
        "nodes": st.lists(
            st.fixed_dictionaries(
                {
                    "memory": st.sampled_from([2048, 4096]),
                    "status": st.sampled_from(["enabled", "enabled", "enabled", "disabled"]),
                    "state": st.sampled_from(["up", "up", "up", "down"]),
                    "power_state": st.sampled_from(["on", "on", "on", "off"]),
                }
            ),
            min_size=2,
            max_size=3,
        ),
        "servers": st.lists(
            st.tuples(
                st.sampled_from([0, 0, 0, 1, 1, None]),
                st.sampled_from(["active", "active", "active", "stopped", "paused", "error"]),
                st.sampled_from(["small", "small", "large", "unknown"]),
            ),
            min_size=1,
            max_size=3,
        ),
        "pools": st.lists(
            st.tuples(st.sampled_from([10, 20, 40]), st.booleans()), min_size=len(POOLS), max_size=len(POOLS)
        ),
        "closed": st.sampled_from([None, None, None, "a@lvm", "b@lvm"]),
        "volumes": st.lists(
            st.tuples(
                st.sampled_from([0, 0, 1, None]),
                st.sampled_from([None, None, "fast"]),
                st.sampled_from([False, False, True]),
                st.sampled_from([False, False, True]),
                st.sampled_from(["available", "available", "in-use", "error"]),
            ),
            min_size=1,
            max_size=3,
        ),
    }
)
migrations = st.fixed_dictionaries(
    {
        "resource_id": named("server"),
        "migration_type": st.sampled_from(["live", "live", "cold"]),
        "source_node": st.sampled_from(["node-0", "node-0", "node-1"]),
    },
    optional={"destination_node": hosts},
)
switches = st.booleans()
kinds: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "migrate": migrations,
    "resize": st.fixed_dictionaries(
        {"resource_id": named("server"), "flavor": st.sampled_from(["small", "large", "flat", "none"])}
    ),
    "stop": st.fixed_dictionaries({"resource_id": named("server")}),
    "change_nova_service_state": st.fixed_dictionaries(
        {"resource_id": st.just("x"), "state": st.sampled_from(["enabled", "disabled", "up"])},
        optional={"resource_name": hosts},
    ),
    "change_node_power_state": st.one_of(
        st.fixed_dictionaries({"resource_id": named("node"), "state": st.sampled_from(["on", "off"])}),
        st.fixed_dictionaries({"resource_id": named("node"), "state": st.just("off"), "fence": st.just(True)}),
    ),
    "evacuate": st.fixed_dictionaries(
        {"resource_id": named("server"), "source_node": st.sampled_from(["node-0", "node-0", "node-1"])},
        optional={"destination_node": hosts, "fencing": st.just("confirmed")},
    ),
    "volume_migrate": st.one_of(
        st.fixed_dictionaries(
            {
                "resource_id": named("volume"),
                "migration_type": st.sampled_from(["migrate", "migrate", "swap", "retype"]),
                "destination_node": st.sampled_from([*POOLS, *POOLS, "c@lvm#one"]),
            }
        ),
        st.fixed_dictionaries(
            {
                "resource_id": named("volume"),
                "migration_type": st.sampled_from(["retype", "retype", "retype", "swap"]),
                "destination_type": st.sampled_from(["fast", "fast", "fast", "slow", "none"]),
            }
        ),
    ),
    "nop": st.fixed_dictionaries(
        {"message": st.none()},
        optional={
            "skip_pre_condition": switches,
            "fail_pre_condition": switches,
            "fail_execute": switches,
            "fail_post_condition": switches,
        },
    ),
    "sleep": st.sampled_from([{"duration": 0}, {"duration": -1}]),
    "unheard_of": st.just({}),
}
weighted = [*kinds, *["migrate"] * 4, *["volume_migrate", "resize"] * 2]
steps = st.sampled_from(weighted).flatmap(lambda kind: st.tuples(st.just(kind), kinds[kind]))
plans = st.lists(st.tuples(steps, st.sets(st.integers(0, 5), max_size=2)), min_size=1, max_size=6)


def build_compute(cloud: dict[str, Any]) -> list[Server]:
    nodes = [
        make_node(f"node-{number}", uuid=uuid("node", number), **columns)
        for number, columns in enumerate(cloud["nodes"])
    ]
    for name, memory in FLAVORS.items():
        make_flavor(name, memory=memory, vcpus=memory // 1024, disk=0 if name == "flat" else 10)
    return [
        make_server(
            f"server-{number}",
            None if place is None else nodes[place],
            uuid=uuid("server", number),
            state=state,
            flavor=flavor,
            memory=FLAVORS.get(flavor, 1024),
            disk=10,
        )
        for number, (place, state, flavor) in enumerate(cloud["servers"])
    ]


def build_storage(cloud: dict[str, Any], servers: list[Server]) -> None:
    types = {name: make_volume_type(name) for name in ("fast", "slow")}
    pools = [
        make_pool(name, total_capacity_gb=size, volume_types=[types["fast"]] if is_fast else [])
        for name, (size, is_fast) in zip(POOLS, cloud["pools"], strict=True)
    ]
    for pool in pools:
        pool.storage_node.status = "disabled" if pool.storage_node.host == cloud["closed"] else "enabled"
        pool.storage_node.save()
    for number, (place, kind, has_snapshots, is_attached, status) in enumerate(cloud["volumes"]):
        make_volume(
            f"volume-{number}",
            None if place is None else pools[place],
            uuid=uuid("volume", number),
            volume_type=kind and types[kind],
            has_snapshots=has_snapshots,
            attached_to=servers[:1] if is_attached else [],
            status=status,
        )


def build_plan(steps: list[tuple[Step, set[int]]], on_failure: str) -> ActionPlan:
    plan = make_plan(on_failure=on_failure)
    actions = [
        Action.objects.create(action_plan=plan, action_type=kind, input_parameters=parameters)
        for (kind, parameters), _ in steps
    ]
    ActionParent.objects.bulk_create(
        ActionParent(child=actions[child], parent=actions[parent])
        for child, (_, parents) in enumerate(steps)
        for parent in parents
        if parent < child
    )
    return plan


def cloud_rows() -> list[Any]:
    return [
        list(Server.objects.order_by("pk").values_list("node__hostname", "state", "flavor", "memory")),
        list(ComputeNode.objects.order_by("pk").values_list("status", "state", "power_state")),
        list(Volume.objects.order_by("pk").values_list("pool__name", "volume_type__name")),
    ]


# A healthy cloud without capacity for all the moves.
HEALTHY = {"status": "enabled", "state": "up", "power_state": "on"}
SMALL = {
    "nodes": [HEALTHY | {"memory": memory} for memory in (3072, 2048, 1024)],
    "servers": [(0, "active", "small")] * 3,
    "pools": [(30, True), (20, True), (10, False)],
    "closed": None,
    "volumes": [(0, None, False, False, "available")] * 3,
}


@st.composite
def tours(draw: st.DrawFn) -> list[tuple[Step, set[int]]]:
    """Return a sequence of server migrations, volume migrations and resizes, which depend on the earlier ones."""
    places = dict.fromkeys(range(3), 0)
    steps: list[Step] = []
    for _ in range(draw(st.integers(4, 8))):
        kind = draw(st.sampled_from(["migrate", "migrate", "volume_migrate", "volume_migrate", "resize"]))
        number, place = draw(st.integers(0, 2)), draw(st.integers(0, 2))
        inputs = {"resource_id": str(uuid("volume" if kind == "volume_migrate" else "server", number))}
        ways = {
            "migrate": {
                "migration_type": "live",
                "source_node": f"node-{places[number]}",
                "destination_node": f"node-{place}",
            },
            "volume_migrate": {"migration_type": "migrate", "destination_node": POOLS[place]},
            "resize": {"flavor": "large"},
        }
        if kind == "migrate":
            places[number] = place
        steps.append((kind, inputs | ways[kind]))
    return [(step, set()) for step in steps]


@settings(max_examples=12)
@given(cloud=clouds, steps=plans, on_failure=st.sampled_from(["continue", "stop"]))
def test_actions_end_with_the_foreseen_outcome_and_message(
    cloud: dict[str, Any], steps: list[Any], on_failure: str
) -> None:
    assert_preflight_matches_run(cloud, steps, on_failure)


@settings(max_examples=12)
@given(steps=tours())
def test_actions_that_compete_for_capacity_end_with_the_foreseen_outcome_and_message(steps: list[Any]) -> None:
    assert_preflight_matches_run(SMALL, steps, "continue")


def assert_preflight_matches_run(cloud: dict[str, Any], steps: list[Any], on_failure: str) -> None:
    """Run the plan on the cloud, compare the outcomes with the preflight, and roll back."""
    with transaction.atomic():
        build_storage(cloud, build_compute(cloud))
        plan = build_plan(steps, on_failure)
        before = cloud_rows()
        foreseen = {found.action.pk: found.foresight for found in preflight(plan).prospects}
        assert cloud_rows() == before
        ActionPlan.objects.get(pk=plan.pk).launch()
        run_waiting()
        happened = {action.pk: (action.state, action.status_message) for action in plan.actions.all()}
        assert {key: (found.state, found.message) for key, found in foreseen.items()} == happened
        transaction.set_rollback(True)
