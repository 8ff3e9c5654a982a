"""Actions, as the API shows them."""

from typing import Any

from rest_framework import serializers

from actions.models import Action, ActionParent
from watcher_site import plugins
from watcher_site.api.serializers import ResourceSerializer, Row, links_field


class ActionSerializer(ResourceSerializer):
    uuid = serializers.UUIDField()
    state = serializers.ChoiceField(Action.State.choices)
    action_type = serializers.CharField()
    action_plan_uuid = serializers.UUIDField()
    parents = serializers.ListField(child=serializers.UUIDField())
    links = links_field()
    description = serializers.CharField(help_text="the text of the action type, empty for an unknown one")
    input_parameters = serializers.DictField()
    status_message = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(allow_null=True)
    deleted_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        collection = "actions"
        short = ("uuid", "state", "action_type", "action_plan_uuid", "parents", "links")
        since = {"status_message": (1, 5)}
        columns = {"action_plan_uuid": "action_plan__uuid"}
        computed = ("parents", "links", "description")
        hidden = ("id",)

    @classmethod
    def add_parents(cls, rows: list[Row]) -> None:
        parents: dict[int, list[Any]] = {row["id"]: [] for row in rows}
        edges = ActionParent.objects.filter(child__in=list(parents)).order_by("parent")
        for child, parent in edges.values_list("child", "parent__uuid"):
            parents[child].append(parent)
        for row in rows:
            row["parents"] = parents[row["id"]]

    @classmethod
    def add_description(cls, rows: list[Row]) -> None:
        descriptions = {name: kind.description for name, kind in plugins.load("ACTION_TYPES").items()}
        for row in rows:
            row["description"] = descriptions.get(row["action_type"], "")
