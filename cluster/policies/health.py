"""The health policy: the operation that recovers nodes of a cluster."""

from typing import Any

from django.db.models import TextChoices

from cluster.policies.base import PolicyCheck, PolicyType, When, section


class RecoverAction(TextChoices):
    REBOOT = "REBOOT", "restart the server"
    REBUILD = "REBUILD", "rebuild the server on its node"
    RECREATE = "RECREATE", "delete the server, and create another"


class Health(PolicyType):
    """Chooses the recovery operation, unless the request names one."""

    name = "senlin.policy.health-1.2"
    description = "Sets the operation that recovers nodes."
    priority = 600
    targets = {When.BEFORE: frozenset({"CLUSTER_RECOVER", "NODE_RECOVER"})}
    schema = {
        "type": "object",
        "properties": {
            "recovery": section(
                "the recovery of nodes",
                operation={
                    "enum": RecoverAction.values,
                    "default": RecoverAction.RECREATE.value,
                    "description": "the operation on the server of a node",
                },
            ),
        },
        "additionalProperties": False,
    }

    def pre_op(self, check: PolicyCheck) -> None:
        operation: Any = check.inputs.get("operation") or self.spec["recovery"]["operation"]
        check.data["health"] = {**check.data.get("health", {}), "recover_action": operation}
