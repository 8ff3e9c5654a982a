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

    keystone_id = models.CharField(max_length=255, help_text="the id of the trust")
    project_id = models.CharField(max_length=255)
    user_id = models.CharField(max_length=255, help_text="the id that Keystone has for the trustor")
    user_name = models.CharField(max_length=255)
    roles = models.JSONField(default=list, help_text="the names of the roles that are delegated")
    created_at = models.DateTimeField(default=timezone.now)
    used_at = models.DateTimeField(default=timezone.now, help_text="when a request last chose it")
    failed_at = models.DateTimeField(null=True, help_text="when Keystone refused it")

    objects = TrustQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint("project_id", "user_id", name="trust_of_user_in_project")]

    def __str__(self) -> str:
        return f"trust of {self.user_name} in project {self.project_id}"
