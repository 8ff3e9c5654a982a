"""``/v1/broker``: how the message broker fares."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from watcher_site.api.paging import refuse_unknown_arguments
from watcher_site.api.resources.subscriptions import NOTIFICATIONS
from watcher_site.api.views import ResourceView
from watcher_site.models import Delivery
from watcher_site.notifications.broker_state import broker_state


class BrokerSerializer(serializers.Serializer[Any]):
    enabled = serializers.BooleanField(help_text="whether WATCHER_NOTIFICATION_URL is set")
    waiting = serializers.IntegerField(help_text="notifications that wait for it")
    undelivered = serializers.IntegerField(help_text="notifications that were given up")
    oldest = serializers.DateTimeField(allow_null=True, help_text="since when something waits")
    problem = serializers.CharField(allow_null=True, help_text="why the last attempt came to nothing")


class BrokerView(ResourceView):
    since = NOTIFICATIONS
    model = Delivery
    title = "Message broker"
    policy = "broker"
    policy_actions = {"look": "get"}
    answers = {"look": (200, BrokerSerializer)}

    def look(self, request: Request) -> Response:
        """Tell what waits for the message broker, since when, and why."""
        refuse_unknown_arguments(request.query_params, ())
        return Response(BrokerSerializer(broker_state()).data)
