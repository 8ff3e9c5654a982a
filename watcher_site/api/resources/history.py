"""``/v1/history``: the events of history, with filters, and their export to files."""

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request

from watcher_site.api.bodies import TIME
from watcher_site.api.paging import refuse_unknown_arguments
from watcher_site.api.serializers import ResourceSerializer, links_field
from watcher_site.api.versions import Version
from watcher_site.api.views import ResourceView
from watcher_site.history.reading import FILTERS, FORMATS, download, narrow
from watcher_site.models import HistoryEntry

HISTORY: Version = (1, 13)
USER_ID: Version = (1, 14)
TIME_OR_EMPTY = {**TIME, "pattern": f"^$|{TIME['pattern']}"}
FILTER_SCHEMAS: dict[str, dict[str, Any]] = {
    "outcome": {"type": "string", "enum": [*HistoryEntry.Outcome.values, ""]},
    "object_uuid": {"type": "string", "format": "uuid"},
    "since": TIME_OR_EMPTY,
    "before": TIME_OR_EMPTY,
}


class HistorySerializer(ResourceSerializer):
    uuid = serializers.UUIDField()
    created_at = serializers.DateTimeField()
    user = serializers.CharField(help_text="name of the user at that time; empty if no user was logged in")
    user_id = serializers.CharField(
        allow_null=True, help_text="id of the user in Keystone; null for accounts of the site"
    )
    project_id = serializers.CharField()
    request_id = serializers.CharField(help_text="id of the request in the log; empty for commands")
    deed = serializers.CharField(help_text="type of the object and operation, such as action_plan.start")
    outcome = serializers.ChoiceField(HistoryEntry.Outcome.values)
    object_type = serializers.CharField()
    object_uuid = serializers.UUIDField(allow_null=True)
    object_name = serializers.CharField(help_text="name of the object at that time, if it had one")
    within_uuid = serializers.UUIDField(
        allow_null=True, help_text="UUID of the containing object, such as the plan of an action"
    )
    message = serializers.CharField(help_text="the reason that the user gave, or the reason for a refusal")
    details = serializers.DictField()
    links = links_field()

    class Meta:
        collection = "history"
        since = {"user_id": USER_ID}
        short = ("uuid", "created_at", "user", "deed", "outcome", "object_type", "object_uuid", "object_name", "links")
        columns = {"within_uuid": "within"}
        json = ("details",)
        computed = ("links",)


class HistoryView(ResourceView):
    """The events of history, read only. They are written with their change, and deleted when they are old."""

    since = HISTORY
    serializer_class = HistorySerializer
    model = HistoryEntry
    title = "HistoryEntry"
    policy = "history"
    filters = list(FILTERS)
    filter_schemas = FILTER_SCHEMAS
    arguments_since = {"user_id": USER_ID}
    sort_keys = {
        "created_at": "created_at",
        "user": "user",
        "deed": "deed",
        "outcome": "outcome",
        "object_type": "object_type",
        "object_name": "object_name",
    }
    # The newest first, as in logs.
    sort_direction = "desc"
    # Also for the other methods: there is no permission to change history.
    permissions_required: dict[Any, str] = dict.fromkeys(
        ("short_list", "detailed_list", "retrieve", "export", None), "watcher_site.view_historyentry"
    )
    answers = {"export": (200, OpenApiTypes.STR)}
    media_types = {"export": tuple(media.partition(";")[0] for media, _ in FORMATS.values())}
    arguments = {
        "export": [
            OpenApiParameter("format", str, enum=list(FORMATS), default="csv"),
            *(OpenApiParameter(name, FILTER_SCHEMAS.get(name, str)) for name in FILTERS),
        ]
    }

    def find_present(self, identifier: str) -> Any:
        return self.lookup(identifier).first()

    def export(self, request: Request) -> HttpResponseBase:
        """Export the entries that match the filters, oldest first, as CSV or JSON lines."""
        query = request.query_params
        refuse_unknown_arguments(query, {"format", *FILTERS})
        values = {name: query[name] for name in FILTERS if name in query}
        return download(narrow(HistoryEntry.objects.all(), values), query.get("format", "csv"), values)


def filter_by(name: str) -> Callable[[Any, QuerySet[Any], str], QuerySet[Any]]:
    return lambda self, queryset, value: narrow(queryset, {name: value})  # type: ignore[arg-type]


for name in FILTERS:
    setattr(HistoryView, f"filter_{name}", filter_by(name))
