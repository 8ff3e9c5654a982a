"""The filters of lists that users saved under names."""

from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

NAME_LENGTH = 100
QUERY_LENGTH = 2000


class SavedFilterQuerySet(models.QuerySet[Any]):
    def of(self, user: Any) -> Self:
        """Select the filters of an account, or of a Keystone user, who has no account."""
        return self.filter(**owner_of(user))


def owner_of(user: Any) -> dict[str, Any]:
    """Return the values of the columns that identify a user."""
    return {"user_id": user.pk} if user.pk else {"keystone_user_id": user.user_id}


class SavedFilter(models.Model):
    """The filters of one list that a user saved. Only this user sees them."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="saved_filters")
    keystone_user_id = models.CharField(max_length=255, null=True)
    page = models.CharField(max_length=100, help_text="name of the URL pattern of the list")
    name = models.CharField(max_length=NAME_LENGTH)
    query = models.CharField(max_length=QUERY_LENGTH, help_text="query string of the list")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = SavedFilterQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                condition=Q(user=None, keystone_user_id__isnull=False)
                | Q(user__isnull=False, keystone_user_id__isnull=True),
                name="saved_filter_has_owner",
            ),
            # Their indexes also serve the lookup of a user's filters of one list.
            models.UniqueConstraint("user", "page", "name", name="saved_filter_of_account"),
            models.UniqueConstraint("keystone_user_id", "page", "name", name="saved_filter_of_keystone_user"),
        ]

    def __str__(self) -> str:
        return self.name
