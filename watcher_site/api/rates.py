"""The limit on the number of requests that each person sends to the API, where the settings name one."""

from typing import Any

from django.conf import settings
from django.core.cache import caches
from django.utils.connection import ConnectionProxy
from rest_framework.throttling import SimpleRateThrottle


class RequestRate(SimpleRateThrottle):
    """At most `settings.API_MOST_REQUESTS` requests of a person in a minute; each web process counts by itself."""

    cache = ConnectionProxy(caches, "request_rates")  # type: ignore[assignment]

    def get_rate(self) -> str:
        return f"{settings.API_MOST_REQUESTS}/min"

    def get_cache_key(self, request: Any, view: Any) -> str:
        """Return the key of the account, of the user of Keystone, or else of the address of the client."""
        user = request.user
        if user.is_authenticated:
            return f"account:{user.pk}" if user.pk is not None else f"keystone:{user.user_id}"
        return f"address:{request.META.get('REMOTE_ADDR', '')}"
