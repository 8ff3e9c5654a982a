"""``/v1/webhooks``: trigger an EVENT audit (docs/compatibility.md, "Webhooks")."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from audits.models import Audit
from audits.operations.changes import trigger_audit
from watcher_site.api.views import NamedLookup, ResourceView
from watcher_site.refusals import Invalid


class WebhookView(NamedLookup, ResourceView):
    model = Audit
    title = "Audit"
    policy = "webhook"
    permissions_required = {"trigger": "audits.trigger_audit"}
    bodies = {"trigger": OpenApiTypes.ANY}
    history_events = {"trigger": "audit.trigger"}
    answers = {"trigger": (202, None)}

    def trigger(self, request: Request, identifier: str) -> Response:
        """Have an EVENT audit run once more. The body must be JSON, and does not matter."""
        if not request.headers.get("Content-Length", "0").strip("0"):
            raise Invalid('Missing argument: "body"')
        _ = request.data
        audit: Any = self.get_object(request, identifier)
        trigger_audit(audit)
        return Response(status=202)
