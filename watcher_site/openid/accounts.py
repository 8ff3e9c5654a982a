"""Accounts of users of an OpenID provider, identified only by the issuer and subject of their claims.

Names and mail addresses do not identify an account, because users can often choose these at the provider.
"""

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction
from structlog.contextvars import get_contextvars

from watcher_site.accounts.users import set_groups
from watcher_site.database.text import make_storable
from watcher_site.history import record
from watcher_site.models import ExternalIdentity
from watcher_site.openid import messages
from watcher_site.openid.provider import LoginRejected, find_claim
from watcher_site.request_context import CallingContext, on_behalf_of

NAME_LENGTH, SUBJECT_LENGTH = 150, 255
log = structlog.get_logger(__name__)


def find_or_make_account(claims: dict[str, Any]) -> User:
    """Return the account of a provider's user, with the groups that the claims determine.

    The account is created at the first login. If the user no longer has any group, the groups of the account are
    removed, too.

    Raises:
        LoginRejected: the user has no group here, or the account is disabled.
    """
    subject, groups = claims["sub"], find_groups(claims)
    if not isinstance(subject, str) or not 0 < len(subject) <= SUBJECT_LENGTH or subject != make_storable(subject):
        raise LoginRejected(messages.NO_IDENTIFIER.fill(provider=settings.OIDC_NAME))
    user = find_account(subject)
    if user is None and groups:
        user = make_account(subject, claims)
    if user is not None:
        with on_behalf_of(lambda: caller_named(user.username)):
            set_groups(user.username, groups)
    if user is None or not groups:
        raise LoginRejected(messages.NO_GROUP.fill(provider=settings.OIDC_NAME))
    if not user.is_active:
        raise LoginRejected(messages.LOGIN_OF_DISABLED_ACCOUNT.text)
    return user


def find_account(subject: str) -> User | None:
    return User.objects.filter(
        external_identity__issuer=settings.OIDC_ISSUER, external_identity__subject=subject
    ).first()


def find_groups(claims: dict[str, Any]) -> list[str]:
    """Return the names of the site's groups to which the table of groups maps the groups in the claims."""
    found = find_claim(claims, settings.OIDC_GROUPS_CLAIM)
    named = [found] if isinstance(found, str) else found if isinstance(found, list) else []
    mapped = {settings.OIDC_GROUPS[name] for name in named if isinstance(name, str) and name in settings.OIDC_GROUPS}
    existing = set(Group.objects.filter(name__in=mapped).values_list("name", flat=True)) if mapped else set()
    for missing in sorted(mapped - existing):
        log.error("WATCHER_OIDC_GROUPS names a group that does not exist.", group=missing)
    return sorted(existing)


def make_account(subject: str, claims: dict[str, Any]) -> User:
    """Return a new account without a password, or the one that was created at the same time."""
    for name in choose_names(subject, claims):
        if User.objects.filter(username__iexact=name).exists():
            continue
        user = User(username=name)
        user.set_unusable_password()
        try:
            with transaction.atomic():
                user.save(force_insert=True)
                ExternalIdentity.objects.create(user=user, issuer=settings.OIDC_ISSUER, subject=subject)
                details = {"issuer": settings.OIDC_ISSUER, "subject": subject}
                record("user.create", user, caller=caller_named(name), details=details)
                return user
        except IntegrityError:
            if found := find_account(subject):
                return found
    raise LoginRejected(messages.NO_FREE_NAME.text)


def choose_names(subject: str, claims: dict[str, Any]) -> Iterator[str]:
    """Yield names for an account: the name at the provider, then with the provider's host, then with a digest."""
    chosen = claims.get("preferred_username") or claims.get("email") or "user"
    name = re.sub(r"[^\w.@+-]", "", str(chosen))[:100] or "user"
    digest = sha256(f"{settings.OIDC_ISSUER}\n{subject}".encode()).hexdigest()
    host = urlsplit(settings.OIDC_ISSUER).hostname or ""
    for text in (name, f"{name}@{host}", f"{name}-{digest[:12]}"):
        yield text[:NAME_LENGTH]


def caller_named(name: str) -> CallingContext:
    return CallingContext(user=name, request_id=get_contextvars().get("request_id"))
