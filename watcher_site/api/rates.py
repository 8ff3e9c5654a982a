"""The limit on the number of requests that each user sends to the API (``settings.API_MOST_REQUESTS``)."""

from typing import Any

from django.conf import settings
from django.core.cache import caches
from django.utils.connection import ConnectionProxy
from rest_framework.throttling import SimpleRateThrottle


class RequestRate(SimpleRateThrottle):
    """Limits a user to `settings.API_MOST_REQUESTS` requests per minute and web process."""

    cache = ConnectionProxy(caches, "request_rates")  # type: ignore[assignment]

    def get_rate(self) -> str:
        return f"{settings.API_MOST_REQUESTS}/min"

    def get_cache_key(self, request: Any, view: Any) -> str:
        """Return the key of the account, of the Keystone user, or else of the client's address."""
        user = request.user
        if user.is_authenticated:
            return f"account:{user.pk}" if user.pk is not None else f"keystone:{user.user_id}"
        return f"address:{request.META.get('REMOTE_ADDR', '')}"
