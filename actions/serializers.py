"""Actions, as the API shows them."""

from django.db.models import OuterRef
from rest_framework import serializers

from actions.models import Action, ActionParent
from watcher_site import plugins
from watcher_site.api.serializers import ResourceSerializer, Row, links_field
from watcher_site.expressions import JSONArray, UUIDText


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
        columns = {
            "action_plan_uuid": "action_plan__uuid",
            "parents": JSONArray(
                ActionParent.objects.filter(child=OuterRef("pk"))
                .order_by("parent")
                .values(value=UUIDText("parent__uuid"))
            ),
        }
        json = ("parents", "input_parameters")
        computed = ("links", "description")

    @classmethod
    def add_description(cls, rows: list[Row]) -> None:
        descriptions = {name: kind.description for name, kind in plugins.load("ACTION_TYPES").items()}
        for row in rows:
            row["description"] = descriptions.get(row["action_type"], "")
