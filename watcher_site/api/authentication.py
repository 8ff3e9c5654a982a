"""HTTP Basic and token authentication. Sessions are authenticated by REST framework."""

from hashlib import blake2b
from hmac import compare_digest
from secrets import token_bytes
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone
from knox.auth import TokenAuthentication as KnoxTokenAuthentication
from knox.crypto import hash_token
from knox.models import AuthToken
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.authentication import BasicAuthentication as RestBasicAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from watcher_site.accounts.token_limits import USE_INTERVAL, UsedToken, limit_to_group, record_use
from watcher_site.backends import accounts
from watcher_site.configuration.keystone import KEYSTONE, LOCAL
from watcher_site.database.queries import Placeholder, Query
from watcher_site.history.logins import record_bad_token
from watcher_site.keystone.tokens import LOCAL_TOKEN, BadToken, challenge, identify_user

# Verified credentials are cached in this process only, under a key that only this process has.
DIGEST_KEY = token_bytes(32)

by_name = Query(accounts().filter(username=Placeholder("name", User._meta.get_field("username"))))
# The query compares the whole digest, so that response times reveal nothing about a token.
by_token = Query(
    accounts()
    .filter(
        Q(auth_token_set__expiry=None) | Q(auth_token_set__expiry__gte=Now()),
        auth_token_set__digest=Placeholder("digest", AuthToken._meta.get_field("digest")),
    )
    .annotate(
        token_details=F("auth_token_set__details"),
        token_read_only=F("auth_token_set__details__read_only"),
        token_group=F("auth_token_set__details__group"),
        token_used_at=F("auth_token_set__details__last_used_at"),
    )
)


def memory_key(user: Any, request: Any) -> str:
    """Return the cache key of the verified credential of an account, for a client address."""
    return f"credential:{user.pk}:{request.META.get('REMOTE_ADDR', '')}"


def credential_digest(user: Any, password: str) -> bytes:
    """Return the keyed digest of a credential and of the stored password hash.

    A changed password changes the stored hash, so that cached digests no longer match.
    """
    return blake2b(f"{user.pk}\n{user.password}\n{password}".encode(), key=DIGEST_KEY, digest_size=32).digest()


class BasicAuthentication(RestBasicAuthentication):
    """HTTP Basic authentication that does not hash the password at each request.

    A verified credential is cached in the process for `settings.CREDENTIAL_MEMORY_SECONDS`. The account is read from
    its table at each request, so that a disabled account is refused at once.
    """

    www_authenticate_realm = "Watcher Site"

    def authenticate_credentials(self, userid: str, password: str, request: Any = None) -> Any:
        for user in by_name.rows(name=userid) if "\0" not in userid else ():
            remembered = cache.get(memory_key(user, request))
            if user.is_active and remembered and compare_digest(remembered, credential_digest(user, password)):
                return user, None
            if remembered:
                # Otherwise guesses could be compared with the cached digest even when failed logins are limited.
                cache.delete(memory_key(user, request))
        verified, _ = super().authenticate_credentials(userid.replace("\0", ""), password, request)
        digest = credential_digest(verified, password)
        cache.set(memory_key(verified, request), digest, settings.CREDENTIAL_MEMORY_SECONDS)
        return verified, None


class SiteTokenAuthentication(KnoxTokenAuthentication):
    """A token of the site, in ``Authorization: Token``."""

    def authenticate_credentials(self, token: bytes) -> Any:
        """Return the account of a token, and its limits.

        Expired tokens are purged by a command, not by requests.
        """
        digest = hash_token(token.decode("utf-8", "replace"))
        for user in by_token.rows(digest=digest):
            if user.is_active:
                used = UsedToken(bool(user.token_read_only), user.token_group or "")
                if used.group:
                    limit_to_group(user, used.group)
                if user.token_used_at is None or timezone.now() - user.token_used_at >= USE_INTERVAL:
                    record_use(digest, user.token_details is not None)
                return user, used
        raise AuthenticationFailed


class TokenAuthentication(BaseAuthentication):
    """A token in ``X-Auth-Token``, as OpenStack clients send it, or in ``Authorization: Token``.

    `settings.TOKEN_SOURCES` names the issuers: the site, Keystone, or both. Their tokens have different formats.
    ``Authorization`` accepts only tokens of the site.
    """

    site_tokens = SiteTokenAuthentication()

    def authenticate(self, request: Request) -> Any:
        token: str | None = request.META.get("HTTP_X_AUTH_TOKEN")
        is_local = LOCAL in settings.TOKEN_SOURCES
        try:
            if token is None:
                return self.site_tokens.authenticate(request) if is_local else None
            if KEYSTONE in settings.TOKEN_SOURCES and not (is_local and LOCAL_TOKEN.fullmatch(token)):
                return identify_user(request), None
            return self.site_tokens.authenticate_credentials(token.encode("utf-8", "replace"))
        except (AuthenticationFailed, BadToken) as problem:
            record_bad_token(request)
            raise AuthenticationFailed from problem

    def authenticate_header(self, request: Request) -> str:
        header: str = self.site_tokens.authenticate_header(request)
        return challenge() if KEYSTONE in settings.TOKEN_SOURCES else header


class BearerAuthentication(BaseAuthentication):
    """A token of the site in ``Authorization: Bearer``, as Prometheus sends it."""

    site_tokens = SiteTokenAuthentication()
    keyword = b"bearer"

    def authenticate(self, request: Request) -> Any:
        keyword, *token = get_authorization_header(request).split() or [b""]
        if keyword.lower() != self.keyword or LOCAL not in settings.TOKEN_SOURCES:
            return None
        try:
            return self.site_tokens.authenticate_credentials(b" ".join(token))
        except AuthenticationFailed:
            record_bad_token(request)
            raise
