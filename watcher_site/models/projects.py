"""The members of projects."""

from django.conf import settings
from django.db import models


class ProjectMember(models.Model):
    """The membership of a person in a project, with the project's id in the cloud."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="project_memberships")
    project_id = models.CharField(max_length=255)

    class Meta:
        constraints = [models.UniqueConstraint("user", "project_id", name="project_member")]

    def __str__(self) -> str:
        return f"{self.user} in {self.project_id}"
