"""The limits of a token at each request, and the time of its last use.

A token never gives more rights than its account has at the time of the request. A token that is limited to a group has
the rights of that group while the account is a member, and no rights afterwards.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson
from django.db.models import Q
from django.utils import timezone

from watcher_site.accounts.tokens import groups_for
from watcher_site.configuration.rights import MEMBER
from watcher_site.models import TokenDetails

# The greatest age of a stored time of last use. Requests within it do not update the row.
USE_INTERVAL = timedelta(minutes=1)


@dataclass(frozen=True)
class UsedToken:
    """The token of the site that authenticated a request, as ``request.auth`` of REST framework."""

    read_only: bool
    group: str

    @property
    def is_limited(self) -> bool:
        return self.read_only or bool(self.group)


def limit_to_group(user: Any, group: str) -> None:
    """Limit an account that was read for a request to the rights of one of its groups.

    Memberships of projects count only for the group MEMBER. The rules of a policy file see only this group
    (``limited_groups``).
    """
    user.limited_groups = groups_for(user).filter(name=group)
    held = user.limited_groups.exclude(permissions=None).values_list("permissions", flat=True)
    user.own_permissions, user.group_permissions = "[]", orjson.dumps(list(held)).decode()
    user.uses_projects = group == MEMBER and user.limited_groups.exists()
    user.is_superuser = user.is_staff = False


def record_use(digest: str, has_details: bool) -> None:
    """Store the time of a request with a token, unless another request has stored it within the last minute."""
    now = timezone.now()
    if not has_details:
        TokenDetails.objects.bulk_create([TokenDetails(token_id=digest, last_used_at=now)], ignore_conflicts=True)
        return
    is_old = Q(last_used_at=None) | Q(last_used_at__lte=now - USE_INTERVAL)
    TokenDetails.objects.filter(is_old, pk=digest).update(last_used_at=now)
