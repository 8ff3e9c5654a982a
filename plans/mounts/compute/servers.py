"""``/servers`` of the compute service, with instance actions.

See docs/compatibility.md, "Instance actions and events".
"""

from collections.abc import Collection
from functools import cached_property
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Q, QuerySet
from django.http import QueryDict
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from actions.event_details import sees_details, sees_host
from actions.models import ActionEvent
from actions.models.instance_actions import InstanceAction
from actions.server_history import (
    ARGUMENTS,
    BEFORE,
    events_of_operation,
    find_one,
    host_id,
    next_query,
    operation_values,
    read_limit,
    read_list,
    read_query,
    visible_events,
)
from cluster import server_statuses
from cluster.models import Server
from plans.api.servers import HOST, VIEW_ALL
from plans.mounts.compute.versions import (
    CHANGES_BEFORE,
    DELETED_SERVERS,
    DETAILS,
    EMBEDDED_FLAVORS,
    EVENTS_FOR_ALL,
    HOSTS,
    PAGES,
    ComputeView,
)
from watcher_site.api.resources.discovery import host
from watcher_site.authorization.enforcement import decide, projects_by
from watcher_site.refusals import Invalid, NotFound

Row = dict[str, Any]
TIME = "%Y-%m-%dT%H:%M:%SZ"
SERVER_ARGUMENTS = frozenset(
    {"limit", "marker", "name", "status", "project_id", "tenant_id", "all_tenants", "deleted"}
)
NOT_SO = frozenset({"0", "false", "f", "no", "n", "off"})
Result = ActionEvent.Result
# Nova has two results, and null while an operation runs. A cancelled or deferred execution counts as failed; an
# execution that waits for its derived actions has not ended.
RESULTS = {
    Result.SUCCESS: "Success",
    Result.SKIPPED: "Success",
    Result.RETRY: "Error",
    Result.WAITING: None,
    Result.ERROR: "Error",
    Result.CANCELLED: "Error",
}


class ServersView(ComputeView):
    """The base of the views of servers: access, and the format of a server."""

    permissions = {"GET": VIEW_ALL}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if decide(self.policy, request.user) is False and not self.projects:
            raise PermissionDenied(f"Policy doesn't allow {self.policy} to be performed.")

    @property
    def base(self) -> str:
        return f"{host(self.request)}/compute/v2.1"

    @cached_property
    def sees_all(self) -> bool:
        """Whether the servers of all projects are shown."""
        decision = decide(self.policy, self.request.user)
        return bool(self.request.user.has_perm(VIEW_ALL)) if decision is None else decision

    @cached_property
    def projects(self) -> frozenset[str]:
        return projects_by(self.policy, self.request.user)

    def servers(self) -> QuerySet[Server]:
        """Return the servers that the user may see, including deleted ones."""
        servers: Any = Server.objects.select_related("node").annotate(
            shown=server_statuses.status_expression(knows_pending=False),
            vm_state=server_statuses.state_without_pending(),
        )
        return servers if self.sees_all else servers.filter(project_id__in=self.projects)

    def find_server(self, identifier: str, *, deleted: bool = False) -> Server:
        """Return a server that the user may see. Raises: `NotFound`."""
        missing = NotFound(f"Instance {identifier} could not be found.")
        try:
            uuid = UUID(identifier)
        except ValueError:
            raise missing from None
        servers = self.servers() if deleted else self.servers().filter(deleted_at=None)
        found = servers.filter(uuid=uuid).first()
        if found is None:
            raise missing
        return found

    def server_summary(self, server: Server) -> Row:
        own, bookmark = f"{self.base}/servers/{server.uuid}", f"{host(self.request)}/compute/servers/{server.uuid}"
        links = [{"rel": "self", "href": own}, {"rel": "bookmark", "href": bookmark}]
        return {"id": str(server.uuid), "name": server.name, "links": links}

    def server_details(self, server: Any) -> Row:
        node = server.node.hostname if server.node else ""
        fields = self.server_summary(server) | {
            "status": server.shown,
            "tenant_id": server.project_id,
            "user_id": server.user_id,
            "metadata": server.metadata,
            "hostId": host_id(server.project_id, node),
            "image": {"id": server.image} if server.image else "",
            "flavor": self.flavor(server),
            "created": server.created_at.strftime(TIME),
            "updated": (server.updated_at or server.created_at).strftime(TIME),
            "addresses": {},
            "OS-EXT-STS:vm_state": server.vm_state,
            "OS-EXT-STS:task_state": server.task_state,
            "OS-EXT-AZ:availability_zone": server.node.zone if server.node else "",
            "OS-SRV-USG:launched_at": server.launched_at and server.launched_at.strftime("%Y-%m-%dT%H:%M:%S.%f"),
            "OS-SRV-USG:terminated_at": server.deleted_at and server.deleted_at.strftime("%Y-%m-%dT%H:%M:%S.%f"),
        }
        if server.shown in (server_statuses.ERROR_STATUS, server_statuses.DELETED) and server.fault:
            fields["fault"] = {name: server.fault.get(name) for name in ("code", "created", "message")}
        return fields | ({HOST: node or None} if self.sees_all and sees_host(self.request.user) else {})

    def flavor(self, server: Server) -> Row:
        """Return the flavor of a server; before 2.47, an object with the name of the flavor as the id."""
        if self.version < EMBEDDED_FLAVORS:
            return {"id": server.flavor, "links": []}
        own = {"original_name": server.flavor, "vcpus": server.vcpus, "ram": server.memory, "disk": server.disk}
        return own | {"ephemeral": 0, "swap": 0, "extra_specs": server.flavor_extra_specs}


class ServerList(ServersView):
    """Lists of servers, newest first."""

    policy = "os_compute_api:servers:index"
    detailed = False

    def get(self, request: Request) -> Response:
        if strays := sorted(set(request.query_params) - SERVER_ARGUMENTS):
            raise Invalid(f"Additional properties are not allowed ('{strays[0]}' was unexpected)")
        limit = read_limit(request.query_params.get("limit"))
        page = list(self.page_after(self.filtered_servers(request)).order_by("-created_at", "-pk")[:limit])
        answer: Row = {
            "servers": [self.server_details(one) if self.detailed else self.server_summary(one) for one in page]
        }
        if page and len(page) == limit:
            query = urlencode({**request.query_params.dict(), "marker": str(page[-1].uuid)})
            path = f"{self.base}/servers{'/detail' if self.detailed else ''}"
            answer["servers_links"] = [{"rel": "next", "href": f"{path}?{query}"}]
        return Response(answer)

    def filtered_servers(self, request: Request) -> QuerySet[Server]:
        query, servers = request.query_params, self.servers()
        gone = self.sees_all and query.get("deleted", "0").lower() not in NOT_SO
        servers = servers.exclude(deleted_at=None) if gone else servers.filter(deleted_at=None)
        if "name" in query:
            servers = servers.filter(name__contains=query["name"])
        for name in ("project_id", "tenant_id"):
            if name in query:
                servers = servers.filter(project_id=query[name])
        if statuses := [status.upper() for status in query.getlist("status")]:
            servers = servers.filter(server_statuses.with_statuses(statuses, knows_pending=False))
        return servers

    def page_after(self, servers: QuerySet[Server]) -> QuerySet[Server]:
        marker = self.request.query_params.get("marker")
        if marker is None:
            return servers
        try:
            last = self.find_server(marker, deleted=True)
        except NotFound:
            raise Invalid(f"marker [{marker}] not found") from None
        older, same = Q(created_at__lt=last.created_at), Q(created_at=last.created_at, pk__lt=last.pk)
        return servers.filter(older | same)


class DetailedServerList(ServerList):
    policy = "os_compute_api:servers:detail"
    detailed = True


class OneServer(ServersView):
    policy = "os_compute_api:servers:show"

    def get(self, request: Request, identifier: str) -> Response:
        return Response({"server": self.server_details(self.find_server(identifier))})


class InstanceActionsView(ServersView):
    def server(self, identifier: str) -> Server:
        return self.find_server(identifier, deleted=self.version >= DELETED_SERVERS)

    def show(self, found: InstanceAction) -> Row:
        row = operation_values(found)
        if self.version < PAGES:
            del row["updated_at"]
        return row


class InstanceActionList(InstanceActionsView):
    policy = "os_compute_api:os-instance-actions:list"

    def get(self, request: Request, identifier: str) -> Response:
        server = self.server(identifier)
        query = request.query_params if self.version >= PAGES else QueryDict()
        self.refuse_unknown(query)
        listing = read_query(query)
        page = read_list(server.uuid, listing)
        answer: Row = {"instanceActions": [self.show(one) for one in page]}
        following = next_query(listing, query, page) if self.version >= PAGES else None
        if following:
            path = f"{self.base}/servers/{server.uuid}/os-instance-actions"
            answer["links"] = [{"rel": "next", "href": f"{path}?{urlencode(following)}"}]
        return Response(answer)

    def refuse_unknown(self, query: Collection[str]) -> None:
        known = set(ARGUMENTS) - (set() if self.version >= CHANGES_BEFORE else {BEFORE})
        if strays := sorted(set(query) - known):
            raise Invalid(f"Additional properties are not allowed ('{strays[0]}' was unexpected)")


class OneInstanceAction(InstanceActionsView):
    policy = "os_compute_api:os-instance-actions:show"

    def get(self, request: Request, identifier: str, request_id: str) -> Response:
        server = self.server(identifier)
        found = find_one(server.uuid, request_id)
        row = self.show(found)
        is_admin = sees_host(request.user)
        if is_admin or self.version >= EVENTS_FOR_ALL:
            row["events"] = self.events(found, server, is_admin)
        return Response({"instanceAction": row})

    def events(self, found: InstanceAction, server: Server, is_admin: bool) -> list[Row]:
        details = self.version >= DETAILS and sees_details(self.request.user, server.project_id)
        events = visible_events(events_of_operation(found), project=server.project_id, host=is_admin, details=details)
        return [self.event(event, is_admin) for event in events]

    def event(self, event: dict[str, Any], is_admin: bool) -> Row:
        event["result"] = RESULTS.get(event["result"])
        if self.version < HOSTS:
            event.pop("hostId")
            event.pop("host", None)
        # Tracebacks stay in the log.
        return event | ({"traceback": None} if is_admin else {})
