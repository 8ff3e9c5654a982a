"""``/v1/tokens``: the valid tokens of the user's account, and those of all accounts for users who may manage users."""

from functools import cached_property
from typing import Any

from django.db.models import QuerySet, Value
from django.db.models.functions import Coalesce
from drf_spectacular.types import OpenApiTypes
from knox.models import AuthToken
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from watcher_site.accounts.token_limits import UsedToken
from watcher_site.accounts.tokens import LONGEST_HOURS, NAME_LENGTH, end_token, make_token, valid_tokens
from watcher_site.accounts.users import MANAGE, require_authority
from watcher_site.api.bodies import FlagField, WholeField, read_body
from watcher_site.api.permissions import LoggedIn, denied
from watcher_site.api.resources.subscriptions import TextField, unstored
from watcher_site.api.serializers import ResourceSerializer, links_field
from watcher_site.api.versions import Version
from watcher_site.api.views import ResourceView
from watcher_site.authorization.enforcement import decide
from watcher_site.keystone.users import KeystoneUser

TOKENS: Version = (1, 14)


class TokenSerializer(ResourceSerializer):
    id = serializers.CharField(help_text="the first 15 characters of the token")
    name = serializers.CharField(help_text="name of the token; may be empty")
    user = serializers.CharField(help_text="name of the account")
    read_only = serializers.BooleanField(help_text="whether the token is limited to read requests")  # type: ignore[assignment]
    group = serializers.CharField(
        help_text="group whose permissions the token has; empty: all permissions of the account"
    )
    links = links_field()
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(
        allow_null=True, help_text="time of the last use, stored at most once per minute"
    )

    class Meta:
        collection = "tokens"
        short = ("id", "name", "user", "expires_at", "links")
        columns = {
            "id": "token_key",
            "name": Coalesce("details__name", Value("")),
            "user": "user__username",
            "read_only": Coalesce("details__read_only", Value(False)),
            "group": Coalesce("details__group", Value("")),
            "created_at": "created",
            "expires_at": "expiry",
            "last_used_at": "details__last_used_at",
        }
        computed = ("links",)


class MadeTokenSerializer(TokenSerializer):
    """The response to POST, the only one that contains the token."""

    token = serializers.CharField(help_text="the value of the header X-Auth-Token")


class OptionalTextField(TextField):
    """An optional text. Null is refused with another message than a missing mandatory field."""

    default_error_messages = {"is_null": "Value: 'None'. It must be a text, or be left out."}

    def validate_empty_values(self, data: Any) -> tuple[bool, Any]:
        if data is None:
            self.fail("is_null")
        return super().validate_empty_values(data)


class NewTokenSerializer(serializers.Serializer[Any]):
    """The body of POST."""

    name = OptionalTextField(max_length=NAME_LENGTH, required=False, allow_blank=True)
    hours = WholeField(
        min_value=1,
        max_value=LONGEST_HOURS,
        required=False,
        help_text="validity in hours; the default is a setting of the site",
    )
    read_only = FlagField(required=False, help_text="whether the token is limited to read requests")  # type: ignore[assignment]
    group = OptionalTextField(
        required=False, allow_blank=True, help_text="group of the account whose permissions the token has"
    )

    argument = "token"
    since: dict[str, Version] = {}


class TokenPermission(LoggedIn):
    """The permission on tokens: any login, unless a rule of the policy file decides."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not super().has_permission(request, view):
            return False
        if not view.sees_all and decide(view.policy_name(), request.user, view.own) is False:
            raise denied(view)
        return True


class TokenView(ResourceView):
    """Tokens. For rules, their attribute ``user_id`` is the name of the account."""

    since = TOKENS
    permission_classes = [TokenPermission]
    default_rule = f"right:{MANAGE} or user_id:%(user_id)s"
    serializer_class = TokenSerializer
    model = AuthToken
    title = "Token"
    policy = "token"
    identifiers = ("id",)
    marker_type = OpenApiTypes.STR
    filters = ["user"]
    sort_keys = {"created_at": "created", "expires_at": "expiry"}
    bodies = {"create": NewTokenSerializer}
    answers = {"create": (201, MadeTokenSerializer)}
    history_events = {"destroy": "token.revoke"}

    def get_queryset(self) -> QuerySet[Any]:
        tokens = valid_tokens()
        return tokens if self.sees_all else tokens.filter(user=self.request.user.pk)

    @cached_property
    def sees_all(self) -> bool:
        """Return whether the request may use the tokens of all accounts."""
        user = self.request.user
        decision = decide(self.policy_name(), user)
        return bool(user.has_perm(MANAGE)) if decision is None else decision

    @property
    def own(self) -> dict[str, str]:
        """Return the attributes of a token of the user's account, for rules."""
        return {"user_id": self.request.user.get_username()}

    def filter_user(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        return queryset.filter(user__username=value)

    def lookup(self, identifier: str) -> QuerySet[Any]:
        return self.get_queryset().filter(token_key=identifier)

    def find_marker(self, marker: str) -> QuerySet[Any]:
        return self.lookup(marker)

    def find_present(self, identifier: str) -> Any:
        return self.lookup(identifier).first()

    def create(self, request: Request) -> Response:
        """Create a token of the user's account. Only this response contains it. Requires a login with a password."""
        if isinstance(request.user, KeystoneUser):
            raise PermissionDenied("A user of Keystone has no tokens of this site.")
        if isinstance(request.auth, UsedToken):
            raise PermissionDenied("No token is created with a token: log in with a password.")
        attributes = read_body(request, NewTokenSerializer, TokenSerializer._declared_fields)
        made, token = make_token(request.user, **attributes)
        row = self.read(AuthToken.objects.filter(pk=made.pk), detailed=True)[0]
        location = f"{self.host()}/v1/tokens/{made.token_key}"
        return unstored(Response({**row, "token": token}, 201, headers={"Location": location}))

    def destroy(self, request: Request, identifier: str) -> Response:
        """Revoke a token. Requests with it are refused."""
        token = self.get_object(request, identifier)
        if isinstance(request.auth, UsedToken) and request.auth.is_limited:
            raise PermissionDenied("No token is revoked with a token that is limited.")
        if token.user_id != request.user.pk:
            require_authority(request.user, token.user)
        end_token(token)
        return Response(status=204)
