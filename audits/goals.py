"""The goals of audits: the indicators that strategies report, and the global efficacy that is computed from them.

The names, display names and indicators are those of Watcher's API, which clients match.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema.validators import Draft202012Validator

from audits import messages
from watcher_site.refusals import Invalid

COUNT: Mapping[str, Any] = {"type": "integer", "minimum": 0}
DEVIATION: Mapping[str, Any] = {"type": "number", "minimum": 0}


@dataclass(frozen=True)
class Indicator:
    """An efficacy indicator: a number that a strategy reports about its proposed plan."""

    name: str
    description: str
    schema: Mapping[str, Any] | None = None
    required: bool = True
    unit: str | None = None

    def specification(self) -> dict[str, str | None]:
        schema = None if self.schema is None else json.dumps(self.schema)
        return {"name": self.name, "description": self.description, "unit": self.unit, "schema": schema}


@dataclass(frozen=True)
class Ratio:
    """A percentage that is computed from two indicators; 0 if the divisor is 0."""

    name: str
    description: str
    part: str
    whole: str

    def of(self, indicators: Mapping[str, float]) -> dict[str, Any]:
        part, total = indicators.get(self.part, 0), indicators.get(self.whole, 0)
        value = 100 * part / total if total else 0
        return {"name": self.name, "description": self.description, "unit": "%", "value": value}


@dataclass(frozen=True)
class GoalDefinition:
    name: str
    display_name: str
    indicators: tuple[Indicator, ...] = ()
    ratios: tuple[Ratio, ...] = ()

    def efficacy_specification(self) -> list[dict[str, str | None]]:
        return [indicator.specification() for indicator in self.indicators]

    def check(self, indicators: Mapping[str, float]) -> None:
        """Raise `Invalid` unless these are the required indicators of the goal."""
        for indicator in self.indicators:
            if indicator.name in indicators:
                problem = next(
                    Draft202012Validator(indicator.schema or {}).iter_errors(indicators[indicator.name]), None
                )
                if problem:
                    raise Invalid(messages.INDICATOR_INVALID.fill(name=indicator.name, problem=problem.message))
            elif indicator.required:
                raise Invalid(messages.INDICATOR_MISSING.fill(name=indicator.name))
        if unknown := indicators.keys() - {indicator.name for indicator in self.indicators}:
            raise Invalid(messages.INDICATOR_UNKNOWN.fill(name=min(unknown), goal=self.name))

    def global_efficacy(self, indicators: Mapping[str, float]) -> list[dict[str, Any]]:
        return [ratio.of(indicators) for ratio in self.ratios]


def count(name: str, description: str, *, required: bool = True) -> Indicator:
    return Indicator(name, description, COUNT, required)


MIGRATIONS = count("instance_migrations_count", "How many servers are to be migrated.")

SERVER_CONSOLIDATION = GoalDefinition(
    "server_consolidation",
    "Server Consolidation",
    (
        count("compute_nodes_count", "How many enabled compute nodes there are."),
        count("released_compute_nodes_count", "How many compute nodes will be left without a server."),
        MIGRATIONS,
    ),
    (
        Ratio(
            "released_nodes_ratio",
            "The share of the compute nodes that will be left without a server.",
            "released_compute_nodes_count",
            "compute_nodes_count",
        ),
    ),
)

WORKLOAD_BALANCING = GoalDefinition(
    "workload_balancing",
    "Workload Balancing",
    (
        MIGRATIONS,
        count("instances_count", "How many servers there are.", required=False),
        Indicator(
            "standard_deviation_after_audit",
            "How far apart the loads of the compute nodes will be.",
            DEVIATION,
            required=False,
        ),
        Indicator(
            "standard_deviation_before_audit",
            "How far apart the loads of the compute nodes are.",
            DEVIATION,
            required=False,
        ),
    ),
    (
        Ratio(
            "live_migrations_count",
            "The share of the servers that are to be migrated.",
            "instance_migrations_count",
            "instances_count",
        ),
    ),
)

# Watcher's names: ``planned_…`` is the number of objects with an action, the other one that of all objects to move.
MAINTAINED = [
    ("live_migrate_instance_count", "live_instance_migrate_ratio", "servers to be migrated live"),
    ("cold_migrate_instance_count", "cold_instance_migrate_ratio", "servers to be migrated cold"),
    ("volume_migrate_count", "volume_migrate_ratio", "volumes to be migrated"),
    ("volume_update_count", "volume_update_ratio", "volumes to be moved while a server uses them"),
]

HARDWARE_MAINTENANCE = GoalDefinition(
    "hardware_maintenance",
    "Hardware Maintenance",
    tuple(
        count(f"{prefix}{name}", f"How many {what} {which}.")
        for name, _, what in MAINTAINED
        for prefix, which in (("", "there are"), ("planned_", "the plan holds"))
    ),
    tuple(
        Ratio(ratio, f"The share of the {what} that the plan holds.", f"planned_{name}", name)
        for name, ratio, what in MAINTAINED
    ),
)

CAPACITY = GoalDefinition(
    "capacity",
    "Capacity",
    (
        count("waiting_servers_count", "How many servers wait for room."),
        count("served_servers_count", "How many of them will have room."),
        MIGRATIONS,
        count("deleted_servers_count", "How many servers are to be deleted, as their owners allow."),
    ),
    (
        Ratio(
            "served_servers_ratio",
            "The share of the servers that wait for room which will have it.",
            "served_servers_count",
            "waiting_servers_count",
        ),
    ),
)

CLUSTER_HEALTH = GoalDefinition(
    "cluster_health",
    "Cluster Health",
    (
        count("clusters_count", "How many clusters of nodes there are."),
        count("recovered_clusters_count", "How many clusters are to be looked at and recovered."),
        count("broken_nodes_count", "How many nodes of these do not run."),
        count("missing_nodes_count", "How many nodes these have less than they want."),
    ),
    (
        Ratio(
            "recovered_clusters_ratio",
            "The share of the clusters that are to be recovered.",
            "recovered_clusters_count",
            "clusters_count",
        ),
    ),
)

NODE_RECOVERY = GoalDefinition(
    "node_recovery",
    "Node Recovery",
    (
        count("failed_nodes_count", "How many compute nodes are down."),
        count("unfenced_nodes_count", "How many of them are left alone, as they are not known to be off."),
        count("failed_servers_count", "How many servers are on the compute nodes that are down."),
        count("evacuated_servers_count", "How many of these servers are to be evacuated."),
    ),
    (
        Ratio(
            "evacuated_servers_ratio",
            "The share of the servers on compute nodes that are down which is to be evacuated.",
            "evacuated_servers_count",
            "failed_servers_count",
        ),
    ),
)

STACK_HEALTH = GoalDefinition(
    "stack_health",
    "Stack Health",
    (
        count("unhealthy_resources_count", "How many resources, servers and nodes are not well."),
        count("replaced_resources_count", "How many of them are to be replaced, rebuilt or recovered."),
    ),
    (
        Ratio(
            "replaced_resources_ratio",
            "The share of what is not well that is to be put right.",
            "replaced_resources_count",
            "unhealthy_resources_count",
        ),
    ),
)

GOALS = {
    goal.name: goal
    for goal in (
        GoalDefinition("airflow_optimization", "Airflow Optimization"),
        CAPACITY,
        CLUSTER_HEALTH,
        GoalDefinition("cluster_maintaining", "Cluster Maintaining"),
        GoalDefinition("dummy", "Dummy goal"),
        HARDWARE_MAINTENANCE,
        NODE_RECOVERY,
        GoalDefinition("noisy_neighbor", "Noisy Neighbor"),
        GoalDefinition("saving_energy", "Saving Energy"),
        SERVER_CONSOLIDATION,
        STACK_HEALTH,
        GoalDefinition("thermal_optimization", "Thermal Optimization"),
        GoalDefinition("unclassified", "Unclassified"),
        WORKLOAD_BALANCING,
    )
}
