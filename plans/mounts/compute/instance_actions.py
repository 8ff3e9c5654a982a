"""``/servers/{id}/os-instance-actions`` of the Nova mount, in each of its microversions.

See docs/compatibility.md, "Instance actions and events".
"""

from collections.abc import Collection
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
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
    next_query,
    operation_values,
    read_list,
    read_query,
    visible_events,
)
from cluster.models import Server
from plans.mounts.compute.servers import Row, ServersView
from plans.mounts.compute.versions import CHANGES_BEFORE, DELETED_SERVERS, DETAILS, EVENTS_FOR_ALL, HOSTS, PAGES
from watcher_site.refusals import Invalid

Result = ActionEvent.Result
# Nova has two results, and none while an operation goes on. A cancelled operation was not done; an execution that is
# tried again has failed; an execution that waits for its derived actions has not ended.
RESULTS = {
    Result.SUCCESS: "Success",
    Result.SKIPPED: "Success",
    Result.RETRY: "Error",
    Result.WAITING: None,
    Result.ERROR: "Error",
    Result.CANCELLED: "Error",
}


class InstanceActionsView(ServersView):
    def server(self, identifier: str) -> Server:
        return self.find_server(identifier, deleted=self.version >= DELETED_SERVERS)

    def show(self, found: InstanceAction) -> Row:
        row = operation_values(found)
        if self.version < PAGES:
            del row["updated_at"]
        return row


class InstanceActionList(InstanceActionsView):
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
