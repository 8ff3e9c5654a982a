"""Tokens of the API: creation, lists and revocation.

Tokens are deleted when the password of their account changes and when the account is disabled. A queryset's ``update``
sends no signal and deletes none, but the tokens of an account that it disabled are refused as well.
"""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import is_password_usable
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.signals import pre_save
from django.utils import timezone
from django.utils.translation import gettext_noop
from knox.models import get_token_model
from knox.settings import CONSTANTS, knox_settings

from watcher_site.accounts import messages
from watcher_site.database.text import require_storable
from watcher_site.history import record
from watcher_site.messages import StoredMessage, translate_message
from watcher_site.models import TokenDetails
from watcher_site.refusals import Conflict, Invalid, NotFound

LEAST_KEY_LENGTH = 6
NAME_LENGTH = 100
# Limit for one account. A program that creates a token for each of its runs should revoke it.
MOST_TOKENS = 100
LONGEST_HOURS = 24 * 365 * 10
# The texts of history.
READ_ONLY = StoredMessage(
    gettext_noop("%(rights)s, read only"),
    {"rights": "all rights of the account|rights of group .+?"},
    rights=translate_message,
)
GROUP_RIGHTS = StoredMessage(gettext_noop("rights of group %(name)s"))
ALL_RIGHTS = StoredMessage(gettext_noop("all rights of the account"))
ACCOUNT_DISABLED = StoredMessage(gettext_noop("The account was disabled."))
ALL_REVOKED = StoredMessage(gettext_noop("All tokens of the account were revoked."))
PASSWORD_CHANGED = StoredMessage(gettext_noop("The password was changed."))


def connect_token_signals() -> None:
    pre_save.connect(end_with_account, sender=get_user_model(), dispatch_uid="watcher_site.accounts.tokens")


def end_with_account(sender: Any, instance: Any, **_: Any) -> None:
    """Delete the tokens of an account before its new password, or its disabled state, is stored.

    In this order no token outlives the change if the process dies in between. Only `set_password` sets ``_password``:
    a password that is only hashed again at a login does not end tokens.
    """
    if instance.pk is None:
        return
    if not instance.is_active:
        end_tokens(instance, ACCOUNT_DISABLED.text)
    elif instance._password is not None or is_losing_password(instance):
        end_tokens(instance, PASSWORD_CHANGED.text)


def is_losing_password(user: Any) -> bool:
    """Return whether an account that has a stored password is about to be stored without one."""
    if user.has_usable_password():
        return False
    stored = get_user_model().objects.filter(pk=user.pk).values_list("password", flat=True).first()
    return stored is not None and is_password_usable(stored)


@transaction.atomic
def end_tokens(user: Any, reason: str) -> int:
    """Delete the tokens of an account, and return their number."""
    found = get_token_model().objects.filter(user=user)
    ended = delete_tokens(found)
    if ended:
        record("token.revoke", user, message=reason, details={"number": ended})
    return ended


def delete_tokens(tokens: QuerySet[Any]) -> int:
    """Delete tokens with their details, and return the number of tokens."""
    _, numbers = tokens.delete()
    return int(numbers.get(get_token_model()._meta.label, 0))


@transaction.atomic
def delete_expired_tokens(most: int | None = None) -> int:
    """Delete the tokens that have expired, or at most a number of them, and return the number of deleted tokens."""
    tokens = get_token_model().objects
    expired = tokens.filter(expiry__lt=timezone.now())
    if most is not None:
        expired = tokens.filter(pk__in=list(expired.values_list("pk", flat=True)[:most]))
    deleted = delete_tokens(expired)
    if deleted:
        record("token.purge", details={"number": deleted})
    return deleted


@transaction.atomic
def make_token(
    user: Any, hours: float | None = None, *, name: str = "", read_only: bool = False, group: str = ""
) -> tuple[Any, str]:
    """Create a token, and return its row and the token itself, of which only the digest is stored.

    Args:
        hours: the time until it expires; WATCHER_TOKEN_HOURS by default.
        read_only: whether the token is limited to requests that read.
        group: the group to whose rights the token is limited; empty for all rights of the account.

    Raises:
        Invalid: a value breaks a rule, or the account is disabled.
        Conflict: the account has too many valid tokens.
    """
    if not user.is_active:
        raise Invalid(messages.ACCOUNT_IS_DISABLED.fill(name=user.get_username()))
    require_token_name(name)
    require_storable("group", group)
    if group and not groups_for(user).filter(name=group).exists():
        raise Invalid(messages.NOT_IN_GROUP.fill(name=user.get_username(), group=f"{group!r}"))
    if valid_tokens().filter(user=user).count() >= MOST_TOKENS:
        raise Conflict(messages.TOO_MANY_TOKENS.fill(name=user.get_username(), number=MOST_TOKENS))
    made, token = get_token_model().objects.create(user, expiry=lifetime(hours))
    made.details = TokenDetails.objects.create(token=made, name=name, read_only=read_only, group=group)
    details = {"key": made.token_key, "expiry": made.expiry, "name": name, "scope": describe_scope(made)}
    record("token.create", user, details=details)
    return made, str(token)


def lifetime(hours: float | None) -> timedelta:
    if hours is None:
        default: timedelta = knox_settings.TOKEN_TTL
        return default
    if not 0 < hours <= LONGEST_HOURS:
        raise Invalid(messages.TOKEN_HOURS.fill(most=LONGEST_HOURS, hours=f"{hours:.15g}"))
    return timedelta(hours=hours)


def require_token_name(name: str) -> None:
    require_storable("name", name)
    if len(name) > NAME_LENGTH or name != name.strip() or not name.isprintable():
        raise Invalid(messages.TOKEN_NAME.fill(number=NAME_LENGTH))


def groups_for(user: Any) -> QuerySet[Group]:
    """Return the groups to which a token of an account may be limited: its own, or all groups for a superuser."""
    groups: QuerySet[Group] = Group.objects.all() if user.is_superuser else user.groups.all()
    return groups


def valid_tokens() -> QuerySet[Any]:
    """Return the tokens that have not expired, with their accounts and details."""
    valid = Q(expiry=None) | Q(expiry__gt=timezone.now())
    return get_token_model().objects.filter(valid).select_related("user", "details")


@transaction.atomic
def revoke_token(key: str) -> Any:
    """Delete a token, and return it.

    Args:
        key: the first characters of the token, as `list_tokens` prints them, or the whole token.

    Raises:
        Invalid: the key is too short or ambiguous.
        NotFound: no valid token begins with the key.
    """
    if len(key) < LEAST_KEY_LENGTH:
        raise Invalid(messages.TOKEN_KEY_LENGTH.fill(number=LEAST_KEY_LENGTH))
    found = list(valid_tokens().filter(token_key__startswith=key[: CONSTANTS.TOKEN_KEY_LENGTH])[:2])
    if not found:
        raise NotFound(messages.NO_SUCH_KEY.text)
    if len(found) > 1:
        raise Invalid(messages.AMBIGUOUS_KEY.text)
    return end_token(found[0])


@transaction.atomic
def end_token(token: Any) -> Any:
    """Delete a token, and return it.

    Raises:
        NotFound: the token was deleted at the same time.
    """
    if not delete_tokens(get_token_model().objects.filter(pk=token.pk)):
        raise NotFound(messages.NO_TOKEN.fill(key=token.token_key))
    record("token.revoke", token.user, details={"key": token.token_key})
    return token


def details_of(token: Any) -> TokenDetails:
    """Return the details of a token, or the defaults if it has none."""
    return getattr(token, "details", None) or TokenDetails(token=token)


def describe_scope(token: Any) -> str:
    details = details_of(token)
    rights = GROUP_RIGHTS.fill(name=details.group) if details.group else ALL_RIGHTS.text
    return READ_ONLY.fill(rights=rights) if details.read_only else rights


def describe_last_use(moment: datetime | None) -> str:
    return f"last used {moment:%Y-%m-%d %H:%M} UTC" if moment else "never used"


def describe_expiry(expiry: datetime | None) -> str:
    return f"valid until {expiry:%Y-%m-%d %H:%M} UTC" if expiry else "valid for ever"
