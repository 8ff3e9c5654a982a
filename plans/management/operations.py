"""Subcommands for operations on clusters, nodes, stacks and servers. An action plan executes each of them."""

from collections.abc import Callable
from typing import Any, ClassVar

from django.core.management import CommandParser

from cluster.policies.sizes import AdjustmentType
from plans.operations.base import RequestOptions
from plans.operations.clusters import check_cluster, delete_cluster, recover_cluster, resize, scale_in, scale_out
from plans.operations.nodes import check_node, delete_node, recover_node
from plans.operations.servers import delete_server, rebuild_server
from plans.operations.stacks import delete_stack
from watcher_site.processes import commands
from watcher_site.terminal.groups import Operation


class PlannedOperation(Operation):
    """An operation whose plan starts at once, or is only created for review."""

    operate: ClassVar[Callable[..., Any]]
    inputs: ClassVar[tuple[str, ...]] = ()
    """The options that are arguments of ``operate``. Options that are not given are left out."""
    plan: Any

    def add_options(self, parser: CommandParser) -> None:
        self.add_inputs(parser)
        parser.add_argument("--plan-only", action="store_true", help="create the plan for review, without starting it")

    def add_inputs(self, parser: CommandParser) -> None:
        """Add the options of ``inputs``."""

    def apply(self, record: Any, **options: Any) -> None:
        given = {name: options[name] for name in self.inputs if options[name] is not None}
        caller = commands.caller(options["person"])
        requested = RequestOptions(caller, options["plan_only"], may_cancel=True)
        self.plan = type(self).operate(record, **given, options=requested).action_plan

    def handle(self, **options: Any) -> str | None:
        printed = super().handle(**options)
        return printed and f"{printed}: action plan {self.plan} {'created' if options['plan_only'] else 'started'}"

    def outcome(self, record: Any) -> str:
        return f"{self.name} {self.resource.title} {record.name}"

    def name_of(self, record: Any) -> str:
        return str(record.name)


class Check(PlannedOperation):
    name = "check"


class CheckCluster(Check):
    help, operate = "Check whether the servers of the nodes run.", check_cluster


class CheckNode(Check):
    help, operate = "Check whether the server of a node runs.", check_node


class Recover(PlannedOperation):
    name = "recover"
    inputs: ClassVar[tuple[str, ...]] = ("operation", "check")

    def add_inputs(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--operation", choices=["REBOOT", "REBUILD", "RECREATE"], help="by default that of the health policy"
        )
        parser.add_argument("--check", action="store_true", default=None, help="check the servers first")


class RecoverCluster(Recover):
    help, operate = "Recover the unhealthy nodes of a cluster.", recover_cluster
    inputs = (*Recover.inputs, "check_capacity")

    def add_inputs(self, parser: CommandParser) -> None:
        super().add_inputs(parser)
        parser.add_argument("--check-capacity", action="store_true", default=None, help="also create missing nodes")


class RecoverNode(Recover):
    help, operate = "Recover a node whose server does not run.", recover_node


class Scale(PlannedOperation):
    inputs = ("count",)

    def add_inputs(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--count", type=int, help="the number of nodes; by default that of the scaling policy, or one"
        )


class ScaleOut(Scale):
    name, help, operate = "scale-out", "Add nodes to a cluster.", scale_out


class ScaleIn(Scale):
    name, help, operate = "scale-in", "Remove nodes from a cluster, with their servers.", scale_in
    question = "Remove nodes of the {title} {name}, with their servers?"


class Resize(PlannedOperation):
    name, help, operate = "resize", "Set the size of a cluster, its limits, or both.", resize
    inputs = ("number", "min_size", "max_size", "adjustment_type")

    def add_inputs(self, parser: CommandParser) -> None:
        parser.add_argument("--nodes", dest="number", type=int, metavar="NUMBER", help="the number of nodes")
        parser.add_argument("--min-size", type=int, metavar="NUMBER", help="the minimum number of nodes")
        parser.add_argument("--max-size", type=int, metavar="NUMBER", help="the maximum number of nodes; -1: no limit")

    def apply(self, record: Any, **options: Any) -> None:
        has_number = options["number"] is not None
        super().apply(record, **options, adjustment_type=AdjustmentType.EXACT_CAPACITY if has_number else None)


class DeleteCluster(PlannedOperation):
    name, help, operate = "delete", "Delete a cluster.", delete_cluster
    question = "Delete the {title} {name}?"
    inputs = ("force",)

    def add_inputs(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--force", action="store_true", help="also delete its nodes with their servers, and cancel its operations"
        )


class DeleteNode(PlannedOperation):
    name, help, operate = "delete", "Delete a node with its server.", delete_node
    question = "Delete the {title} {name} with its server?"


class DeleteStack(PlannedOperation):
    name, help, operate = "delete", "Delete a stack with its resources.", delete_stack
    question = "Delete the {title} {name} with its resources?"


class ServerOperation(Operation):
    """An operation on a server, which starts at once, as in the API."""

    def outcome(self, record: Any) -> str:
        return f"{self.name} {self.resource.title} {record.name}: requested"

    def name_of(self, record: Any) -> str:
        return str(record.name)


class DeleteServer(ServerOperation):
    name, help = "delete", "Delete a server with its local disk."
    question = "Delete the {title} {name} with its local disk?"

    def apply(self, record: Any, **options: Any) -> None:
        delete_server(record, commands.caller(options["person"]))


class RebuildServer(ServerOperation):
    name, help = "rebuild", "Replace the root disk of a server by an image: the data on it is lost."
    question = "Rebuild the {title} {name}? The data on its root disk is lost."

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("--image", help="the id of an image; by default the server's own")

    def apply(self, record: Any, **options: Any) -> None:
        rebuild_server(record, options["image"], commands.caller(options["person"]))
