"""Subscriptions, dead letters (``/v1/undelivered``) and the message broker (``/v1/broker``)."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from watcher_site.api.bodies import FlagField, IdentifierField, apply_patch, read_body, read_patch
from watcher_site.api.paging import read_uuid, refuse_unknown_arguments
from watcher_site.api.serializers import ResourceSerializer, Row, links_field
from watcher_site.api.versions import RECEIVERS, Version, used_by
from watcher_site.api.views import NamedLookup, ResourceView
from watcher_site.models import Delivery, Subscription
from watcher_site.models.notifications import NAME_LENGTH, URL_LENGTH
from watcher_site.notifications import deliveries
from watcher_site.notifications.broker_state import broker_state
from watcher_site.notifications.subscriptions import (
    BROKER,
    CHANGE,
    CHANGEABLE,
    MOST_PATTERNS,
    OWN_FIELDS,
    PATTERN,
    Kind,
    change_subscription,
    changeable_values,
    renew_secret,
    send_test,
    subscribe,
    unsubscribe,
    url_for,
)

NOTIFICATIONS: Version = (1, 13)
SECRET_HELP = "key that signs notifications: whsec_ and 24 to 64 bytes in base64"  # noqa: S105 (words about it)


class SubscriptionSerializer(ResourceSerializer):
    uuid = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(Kind.choices, help_text="webhook, e-mail, or chat")
    url = serializers.CharField(
        allow_null=True,
        help_text="URL of the receiver; only scheme and host for slack, and for users who may not change it;"
        " null for mail",
    )
    addresses = serializers.ListField(
        child=serializers.EmailField(), allow_null=True, help_text="addresses of e-mail; null for other kinds"
    )
    event_types = serializers.ListField(
        child=serializers.CharField(), help_text="patterns such as action.* or *.error"
    )
    enabled = serializers.BooleanField()
    failures = serializers.IntegerField(help_text="number of consecutive failed deliveries")
    problem = serializers.CharField(allow_null=True, help_text="reason for the failure of the last delivery")
    last_success = serializers.DateTimeField(allow_null=True)
    links = links_field()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(allow_null=True)
    deleted_at = serializers.DateTimeField(allow_null=True)

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        if self.context.get("version", RECEIVERS) < RECEIVERS:
            fields["url"].allow_null = False
            if "secret" in fields:
                fields["secret"].required = True
        return fields

    class Meta:
        collection = "subscriptions"
        short = ("uuid", "name", "kind", "url", "addresses", "enabled", "links")
        since = {"kind": RECEIVERS, "addresses": RECEIVERS}
        json = ("event_types",)
        computed = ("links",)


class MadeSubscriptionSerializer(SubscriptionSerializer):
    """The response to POST, the only one that contains the secret."""

    secret = serializers.CharField(required=False, help_text=f"{SECRET_HELP}; only of webhooks")


class TextField(serializers.CharField):
    """A text. Values of other types are refused, not converted."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


@extend_schema_field({"type": "string", "format": "uri", "pattern": "^https?://", "maxLength": URL_LENGTH})
class AddressField(serializers.CharField):
    """The URL of a webhook, which `watcher_site.notifications.subscriptions` validates."""


@extend_schema_field(
    {
        "type": "array",
        "minItems": 1,
        "maxItems": MOST_PATTERNS,
        "items": {"type": "string", "pattern": f"^{PATTERN.pattern}$"},
    }
)
class EventTypesField(serializers.ListField):
    """Patterns of event types, which `watcher_site.notifications.subscriptions` validates."""

    child = TextField()


class NewSubscriptionSerializer(serializers.Serializer[Any]):
    """The body of POST."""

    name = serializers.CharField(max_length=NAME_LENGTH)
    kind = serializers.ChoiceField(Kind.choices, required=False, help_text="default: webhook")
    url = AddressField(max_length=URL_LENGTH, required=False, help_text="for webhook and slack")
    addresses = serializers.ListField(
        child=TextField(), required=False, help_text="addresses of e-mail, for mail, which has no url"
    )
    event_types = EventTypesField(required=False)
    enabled = FlagField(required=False)
    secret = serializers.CharField(required=False, help_text=f"{SECRET_HELP}; default: a generated key")

    argument = "subscription"
    since: dict[str, Version] = {"kind": RECEIVERS, "addresses": RECEIVERS}

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        if self.context.get("version", RECEIVERS) < RECEIVERS:
            fields["url"].required = True
        return fields


class TestSerializer(serializers.Serializer[Any]):
    """A test message that will be sent."""

    uuid = serializers.UUIDField(help_text="id of the test message")
    event_type = serializers.CharField()


def unstored(response: Response) -> Response:
    """Forbid caches to store a response that contains a secret."""
    response["Cache-Control"] = "no-store"
    return response


class SubscriptionView(NamedLookup, ResourceView):
    since = NOTIFICATIONS
    serializer_class = SubscriptionSerializer
    model = Subscription
    title = "Subscription"
    policy = "subscription"
    identifiers = ("uuid", "name")
    filters = ["name"]
    sort_keys = {
        "uuid": "uuid",
        "name": "name",
        "enabled": "enabled",
        "created_at": "created_at",
        "updated_at": "updated_at",
    }
    bodies = {"create": NewSubscriptionSerializer}
    permissions_required = {"send_test": CHANGE, "renew_secret": CHANGE}
    answers = {
        "create": (201, MadeSubscriptionSerializer),
        "send_test": (202, TestSerializer),
        "renew_secret": (200, MadeSubscriptionSerializer),
    }
    history_events = {"send_test": "subscription.test", "renew_secret": "subscription.update"}
    example_step = {"op": "replace", "path": "/enabled", "value": False}

    def filter_name(self, queryset: QuerySet[Subscription], value: str) -> QuerySet[Subscription]:
        return queryset.filter(name__iexact=value)

    def read(self, queryset: QuerySet[Any], detailed: bool) -> list[Row]:
        rows = super().read(queryset, detailed)
        return [{**row, "url": url_for(self.request.user, row["url"]) or None} for row in rows]

    def get_queryset(self) -> QuerySet[Any]:
        found = super().get_queryset()
        return found if used_by(self.request) >= RECEIVERS else found.filter(kind=Kind.WEBHOOK)

    def create(self, request: Request) -> Response:
        """Subscribe a receiver to notifications. For a webhook, only this response contains the secret."""
        attributes = read_body(request, NewSubscriptionSerializer, SubscriptionSerializer._declared_fields)
        subscription, secret = subscribe(**attributes)
        response = self.created(subscription)
        if secret:
            response.data["secret"] = secret
        return unstored(response)

    def partial_update(self, request: Request, identifier: str) -> Response:
        internal = ("/kind", "/failures", "/problem", "/last_success")
        patch = read_patch(request.data, internal=internal, mandatory=[f"/{name}" for name in (*CHANGEABLE, "secret")])
        subscription = self.get_object(request, identifier)
        own = {name: changeable_values(subscription).get(name) for name in OWN_FIELDS[subscription.kind]}
        before = {name: getattr(subscription, name) for name in ("name", "event_types", "enabled")} | own
        after = apply_patch(before, patch)
        changes = {name: value for name, value in after.items() if value != before[name]}
        if changes:
            change_subscription(subscription, changes)
        return Response(self.show(subscription))

    def send_test(self, request: Request, identifier: str) -> Response:
        """Send a test message to a subscription, independent of its event types. The response contains the id."""
        notification = send_test(self.get_object(request, identifier))
        return Response({"uuid": str(notification.uuid), "event_type": notification.event_type}, 202)

    def renew_secret(self, request: Request, identifier: str) -> Response:
        """Replace the secret of a subscription. Only this response contains it. The previous secret is invalid."""
        subscription, secret = renew_secret(self.get_object(request, identifier))
        return unstored(Response({**self.show(subscription), "secret": secret}))

    def destroy(self, request: Request, identifier: str) -> Response:
        unsubscribe(self.get_object(request, identifier))
        return Response(status=204)


COLUMNS = {
    "event_type": "notification__event_type",
    "object_uuid": "notification__object_uuid",
    "subscription_uuid": "subscription__uuid",
}


class UndeliveredSerializer(ResourceSerializer):
    uuid = serializers.UUIDField()
    event_type = serializers.CharField()
    object_uuid = serializers.UUIDField(help_text="UUID of the object of the notification")
    subscription_uuid = serializers.UUIDField(
        allow_null=True, help_text="subscription of the receiver; null: the message broker"
    )
    state = serializers.ChoiceField(Delivery.State.choices, help_text="PENDING after a request to send it again")
    attempts = serializers.IntegerField()
    problem = serializers.CharField(allow_null=True, help_text="reason for the failure of the last attempt")
    links = links_field()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        collection = "undelivered"
        short = ("uuid", "event_type", "object_uuid", "subscription_uuid", "links")
        columns = COLUMNS
        computed = ("links",)


class ResendSerializer(serializers.Serializer[Any]):
    """The body of POST that resends several dead letters, by default all of them."""

    subscription_uuid = IdentifierField(
        required=False,
        allow_null=True,
        help_text="only notifications for this subscription; null: for the message broker",
    )

    argument = "resend"
    since: dict[str, Version] = {}


class ResentSerializer(serializers.Serializer[Any]):
    """The number of dead letters that are sent again."""

    resent = serializers.IntegerField()


class UndeliveredView(ResourceView):
    """Deliveries that became dead letters."""

    since = NOTIFICATIONS
    serializer_class = UndeliveredSerializer
    model = Delivery
    title = "Undelivered notification"
    policy = "undelivered"
    filters = ["subscription_uuid"]
    sort_keys = {"uuid": "uuid", "attempts": "attempts", "created_at": "created_at"}
    permissions_required = {"resend": "watcher_site.resend_delivery", "resend_all": "watcher_site.resend_delivery"}
    bodies = {"resend_all": ResendSerializer}
    answers = {"resend": (202, UndeliveredSerializer), "resend_all": (202, ResentSerializer)}

    def get_queryset(self) -> QuerySet[Delivery]:
        undelivered: QuerySet[Delivery] = Delivery.objects.undelivered()
        return undelivered

    def find_present(self, identifier: str) -> Delivery | None:
        found: Delivery | None = self.lookup(identifier).select_related("notification").first()
        return found

    def filter_subscription_uuid(self, queryset: QuerySet[Delivery], value: str) -> QuerySet[Delivery]:
        return queryset.filter(subscription__uuid=read_uuid(value, "subscription_uuid"))

    def resend(self, request: Request, identifier: str) -> Response:
        """Send an undelivered notification again."""
        found = self.get_object(request, identifier)
        deliveries.resend(found)
        return Response(self.show(found), 202)

    def resend_all(self, request: Request) -> Response:
        """Send all undelivered notifications again, or those of one receiver."""
        refuse_unknown_arguments(request.query_params, ())
        requested = read_body(request, ResendSerializer, UndeliveredSerializer._declared_fields)
        filters = {name: str(uuid or BROKER) for name, uuid in requested.items()}
        chosen = self.get_queryset().filter(**{COLUMNS[name]: uuid for name, uuid in requested.items()})
        return Response({"resent": deliveries.resend_all(chosen, filters)}, 202)

    def destroy(self, request: Request, identifier: str) -> Response:
        """Delete an undelivered notification permanently."""
        deliveries.delete_dead_letter(self.get_object(request, identifier))
        return Response(status=204)


class BrokerSerializer(serializers.Serializer[Any]):
    enabled = serializers.BooleanField(help_text="whether WATCHER_NOTIFICATION_URL is set")
    waiting = serializers.IntegerField(help_text="number of notifications that wait for delivery")
    undelivered = serializers.IntegerField(help_text="number of notifications that could not be delivered")
    oldest = serializers.DateTimeField(allow_null=True, help_text="creation time of the oldest waiting notification")
    problem = serializers.CharField(allow_null=True, help_text="reason for the failure of the last attempt")


class BrokerView(ResourceView):
    since = NOTIFICATIONS
    model = Delivery
    title = "Message broker"
    policy = "broker"
    policy_actions = {"look": "get"}
    answers = {"look": (200, BrokerSerializer)}

    def look(self, request: Request) -> Response:
        """Show the notifications that wait for the message broker: their number, the oldest, and the last error."""
        refuse_unknown_arguments(request.query_params, ())
        return Response(BrokerSerializer(broker_state()).data)
