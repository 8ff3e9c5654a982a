"""Keystone trusts, by which the site creates servers as a user in a project."""

from typing import Self

from django.db import models
from django.utils import timezone


class TrustQuerySet(models.QuerySet["Trust"]):
    def valid(self) -> Self:
        """Select the trusts that Keystone has not refused."""
        return self.filter(failed_at=None)

    def fail(self, keystone_id: str) -> None:
        """Record that Keystone refuses a trust: the user's next request in the project creates another."""
        self.valid().filter(keystone_id=keystone_id).update(failed_at=timezone.now())


class Trust(models.Model):
    """A trust from a user (trustor) to the user of the site's login (trustee), one for each user and project.

    It is not a secret, because only the trustee can use it, but API responses and pages do not contain it.
    """

    keystone_id = models.CharField(max_length=255, help_text="id of the trust in Keystone")
    project_id = models.CharField(max_length=255)
    user_id = models.CharField(max_length=255, help_text="id of the trustor in Keystone")
    user_name = models.CharField(max_length=255)
    roles = models.JSONField(default=list, help_text="names of the delegated roles")
    created_at = models.DateTimeField(default=timezone.now)
    used_at = models.DateTimeField(default=timezone.now, help_text="time of the last request that used the trust")
    failed_at = models.DateTimeField(null=True, help_text="time at which Keystone refused the trust")

    objects = TrustQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint("project_id", "user_id", name="trust_of_user_in_project")]

    def __str__(self) -> str:
        return f"trust of {self.user_name} in project {self.project_id}"
