"""Dotted paths of plug-ins in settings, including former names of modules."""

from collections.abc import Sequence

from watcher_site.configuration.environment import read_list

# Former names of plug-in modules, which the settings of a site may still contain.
FORMER = {
    "actions.types.clusters.cluster_attach_policy": "actions.types.cluster_policies.cluster_attach_policy",
    "actions.types.clusters.cluster_detach_policy": "actions.types.cluster_policies.cluster_detach_policy",
    "actions.types.clusters.cluster_update_policy": "actions.types.cluster_policies.cluster_update_policy",
    "actions.types.clusters.node_check": "actions.types.nodes.node_check",
    "actions.types.clusters.node_create": "actions.types.nodes.node_create",
    "actions.types.clusters.node_delete": "actions.types.nodes.node_delete",
    "actions.types.clusters.node_join": "actions.types.nodes.node_join",
    "actions.types.clusters.node_leave": "actions.types.nodes.node_leave",
    "actions.types.clusters.node_recover": "actions.types.nodes.node_recover",
    "actions.types.clusters.node_update": "actions.types.nodes.node_update",
    "audits.strategies.basic": "audits.strategies.consolidation.basic",
    "audits.strategies.make_room": "audits.strategies.capacity.make_room",
    "audits.strategies.node_resource_consolidation": "audits.strategies.consolidation.node_resource_consolidation",
    "audits.strategies.noisy_neighbor": "audits.strategies.balancing.noisy_neighbor",
    "audits.strategies.outlet_temperature": "audits.strategies.balancing.outlet_temperature",
    "audits.strategies.saving_energy": "audits.strategies.consolidation.saving_energy",
    "audits.strategies.storage_capacity_balance": "audits.strategies.balancing.storage_capacity_balance",
    "audits.strategies.uniform_airflow": "audits.strategies.balancing.uniform_airflow",
    "audits.strategies.vm_workload_consolidation": "audits.strategies.consolidation.vm_workload_consolidation",
    "audits.strategies.workload_balance": "audits.strategies.balancing.workload_balance",
    "audits.strategies.workload_stabilization": "audits.strategies.balancing.workload_stabilization",
}


def read_plugins(name: str, default: Sequence[str]) -> list[str]:
    """Read a list of dotted paths of classes."""
    return [current_path(path) for path in read_list(name, default)]


def current_path(path: str) -> str:
    """Return the dotted path of a class with the current name of its module."""
    module, _, name = path.rpartition(".")
    return f"{FORMER[module]}.{name}" if module in FORMER else path
