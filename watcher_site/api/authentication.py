"""HTTP Basic and token authentication. Sessions are REST framework's own."""

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.utils import timezone
from django.utils.crypto import salted_hmac
from knox.auth import TokenAuthentication as KnoxTokenAuthentication
from rest_framework.authentication import BasicAuthentication as RestBasicAuthentication
from rest_framework.request import Request

SALT = "watcher_site.api.authentication"


def credential_key(user: Any, password: str) -> str:
    """Return what a verified credential is remembered by: a keyed digest of it and of the stored password hash.

    A changed password changes the stored hash, so that nothing remembered is ever found again.
    """
    digest = salted_hmac(SALT, f"{user.pk}\n{user.password}\n{password}", algorithm="sha256")
    return f"credential:{digest.hexdigest()}"


class BasicAuthentication(RestBasicAuthentication):
    """HTTP Basic, without hashing the password at each request.

    A verified credential is remembered in the process for `settings.CREDENTIAL_MEMORY_SECONDS`. The account is
    read from the table at each request all the same: a disabled one is refused at once.
    """

    www_authenticate_realm = "Watcher Site"

    def authenticate_credentials(self, userid: str, password: str, request: Request | None = None) -> Any:
        if "\0" not in userid:
            user = get_user_model().objects.filter(username=userid, is_active=True).first()
            if user and cache.get(credential_key(user, password)):
                return user, None
        verified, _ = super().authenticate_credentials(userid.replace("\0", ""), password, request)
        cache.set(credential_key(verified, password), True, settings.CREDENTIAL_MEMORY_SECONDS)
        return verified, None


class TokenAuthentication(KnoxTokenAuthentication):
    """A token in ``X-Auth-Token``, as OpenStack's clients send it, or in ``Authorization: Token``."""

    def authenticate(self, request: Request) -> Any:
        token = request.headers.get("X-Auth-Token")
        if token is None:
            return super().authenticate(request)
        return self.authenticate_credentials(token.encode("utf-8", "replace").replace(b"\0", b""))

    def _cleanup_token(self, auth_token: Any) -> bool:
        """Say whether the token has expired. Expired ones are purged by a command, not by those who ask."""
        return auth_token.expiry is not None and auth_token.expiry < timezone.now()
