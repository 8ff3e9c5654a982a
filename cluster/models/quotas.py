"""The quotas of projects that differ from the site's defaults."""

from django.db import models
from django.db.models import Q


def limit() -> models.IntegerField:
    return models.IntegerField(null=True, blank=True)


class ProjectQuota(models.Model):
    """The limits of one project: -1 is unlimited, and null is the site's default.

    The row is locked while an object is created in the project, so that concurrent requests cannot exceed a limit.
    """

    project_id = models.CharField(max_length=255, unique=True)
    servers = limit()
    vcpus = limit()
    memory = limit()  # MB
    stacks = limit()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="project_quota_limits",
                condition=Q(
                    *(
                        Q((f"{name}__isnull", True)) | Q((f"{name}__gte", -1))
                        for name in ("servers", "vcpus", "memory", "stacks")
                    )
                ),
            )
        ]

    def __str__(self) -> str:
        return f"quota of project {self.project_id}"
