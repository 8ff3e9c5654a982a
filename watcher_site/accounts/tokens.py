"""Tokens of the API: how they are made, listed and ended before they expire.

They end when the password of their account changes and when the account is disabled, however that is done. A
queryset's ``update`` alone sends no signal; a token of an account that it disabled is refused all the same.
"""

from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import is_password_usable
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.signals import pre_save
from django.utils import timezone
from knox.models import get_token_model
from knox.settings import CONSTANTS

from watcher_site.history import record
from watcher_site.refusals import Invalid, NotFound

LEAST_KEY_LENGTH = 6


def connect_token_signals() -> None:
    pre_save.connect(end_with_account, sender=get_user_model(), dispatch_uid="watcher_site.accounts.tokens")


def end_with_account(sender: Any, instance: Any, **_: Any) -> None:
    """End the tokens of an account before its new password is stored, or before it is stored as disabled.

    In this order no token outlives the change, whatever happens in between. Only `set_password` sets ``_password``:
    a password that is hashed anew at a login stays the same.
    """
    if instance.pk is None:
        return
    if not instance.is_active:
        end_tokens(instance, "The account was disabled.")
    elif instance._password is not None or is_losing_password(instance):
        end_tokens(instance, "The password was changed.")


def is_losing_password(user: Any) -> bool:
    """Return whether an account that has a stored password is about to be stored without one."""
    if user.has_usable_password():
        return False
    stored = get_user_model().objects.filter(pk=user.pk).values_list("password", flat=True).first()
    return stored is not None and is_password_usable(stored)


@transaction.atomic
def end_tokens(user: Any, reason: str) -> int:
    """End the tokens of an account, and return how many there were."""
    ended, _ = get_token_model().objects.filter(user=user).delete()
    if ended:
        record("token.revoke", user, message=reason, details={"number": ended})
    return int(ended)


@transaction.atomic
def make_token(user: Any, **options: Any) -> str:
    """Make a token, and return it: only its digest is stored."""
    made, token = get_token_model().objects.create(user, **options)
    record("token.create", user, details={"key": made.token_key, "expiry": made.expiry})
    return str(token)


def valid_tokens() -> QuerySet[Any]:
    """Return the tokens that have not expired, with their accounts."""
    return get_token_model().objects.filter(Q(expiry=None) | Q(expiry__gt=timezone.now())).select_related("user")


@transaction.atomic
def revoke_token(key: str) -> Any:
    """End one token, and return it.

    Args:
        key: the beginning of the token, such as `list_tokens` prints, or all of it.

    Raises:
        Invalid: the key is too short, or that of several tokens.
        NotFound: no token begins so.
    """
    if len(key) < LEAST_KEY_LENGTH:
        raise Invalid(f"key: must have at least {LEAST_KEY_LENGTH} characters.")
    found = list(valid_tokens().filter(token_key__startswith=key[: CONSTANTS.TOKEN_KEY_LENGTH])[:2])
    if not found:
        raise NotFound("key: no valid token begins so.")
    if len(found) > 1:
        raise Invalid("key: several tokens begin so. Give more of it.")
    token = found[0]
    token.delete()
    record("token.revoke", token.user, details={"key": token.token_key})
    return token


def expiry_in_words(expiry: datetime | None) -> str:
    return f"valid until {expiry:%Y-%m-%d %H:%M} UTC" if expiry else "valid for ever"
