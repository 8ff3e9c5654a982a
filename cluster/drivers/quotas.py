"""Quotas of projects, and the projects in which the cloud can create servers.

Quotas limit servers, vCPUs, MB of memory and stacks. The resources and the meaning of -1 are those of Nova's quota
sets. Servers and stacks without a project have no quota. A real cloud enforces its own quotas of servers.

The embedded cloud creates servers in any project. An OpenStack cloud creates them in the project of the site's login,
and in projects whose users delegate this by a trust.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q, Sum

from cluster import messages
from cluster.drivers.base import cloud, load_driver
from cluster.models import Cluster, Flavor, ProjectQuota, Server, Stack, StackResource, Synchronization, Trust
from watcher_site.accounts.projects import checked_project
from watcher_site.history import record
from watcher_site.refusals import Conflict, Invalid, Refused

UNLIMITED = -1
RESOURCES = ("servers", "vcpus", "memory", "stacks")
MAX_LIMIT = 2**31 - 1


class QuotaExceeded(Refused):
    """A request would exceed a quota. The status is 403, as in Nova and Heat."""

    status = 403


def demand_of(vcpus: int, memory: int) -> dict[str, int]:
    """Return the quota that one server uses, by resource; memory is in MB."""
    return {"servers": 1, "vcpus": vcpus, "memory": memory}


def demand_of_template(template: Mapping[str, Any]) -> Counter[str]:
    """Return the quota that the servers of a normalised template use."""
    return demand_of_flavors(count_flavors(template))


def demand_of_flavors(numbers: Mapping[str, int]) -> Counter[str]:
    """Return the quota that these numbers of servers of each flavor use. Unknown flavors have size zero."""
    rows = list(Flavor.objects.present().filter(Q(flavor_id__in=numbers) | Q(name__in=numbers)))
    flavors = {row.name: row for row in rows} | {row.flavor_id: row for row in rows}
    demand: Counter[str] = Counter()
    for name, number in numbers.items():
        demand["servers"] += number
        if flavor := flavors.get(name):
            demand["vcpus"] += number * flavor.vcpus
            demand["memory"] += number * flavor.memory
    return demand


def count_flavors(template: Mapping[str, Any]) -> Counter[str]:
    """Return the number of servers of each flavor in a normalised template, including groups and nested stacks."""
    numbers: Counter[str] = Counter()
    for resource in template["resources"].values():
        numbers += count_flavors_within(resource)
    return numbers


def count_flavors_within(resource: Mapping[str, Any]) -> Counter[str]:
    properties = resource["properties"]
    if resource["type"] == StackResource.Type.SERVER:
        return Counter([properties["flavor"]])
    if resource["type"] == StackResource.Type.STACK:
        return count_flavors(properties["template"])
    member = count_flavors_within(properties["member"])
    return Counter({flavor: number * properties["size"] for flavor, number in member.items()})


def require_quota(project: str, demand: Mapping[str, int]) -> None:
    """Check that a project may use more resources, and lock its quota until the transaction ends.

    Args:
        demand: additional amounts by the names of `RESOURCES`.

    Raises:
        QuotaExceeded: the message names the resource, the request, the usage and the limit.
    """
    increases = {name: number for name, number in demand.items() if number > 0}
    if cloud().is_mirrored:
        increases = {name: number for name, number in increases.items() if name == "stacks"}
    if not project or not increases:
        return
    quota, _ = ProjectQuota.objects.get_or_create(project_id=project)
    quota = ProjectQuota.objects.select_for_update(no_key=True).get(pk=quota.pk)
    limits = limits_of(quota)
    limited = {name: number for name, number in increases.items() if limits[name] != UNLIMITED}
    check_limits(project, limited, usage_of(project, limited) if limited else {}, limits)


def check_limits(project: str, demand: Mapping[str, int], usage: Mapping[str, int], limits: Mapping[str, int]) -> None:
    """Check the additional demand of a project against its limits. Raises: `QuotaExceeded`."""
    for name, number in demand.items():
        if limits[name] != UNLIMITED and usage[name] + number > limits[name]:
            raise QuotaExceeded(
                messages.PROJECT_QUOTA.fill(
                    name=name, project=project, number=number, used=usage[name], limit=limits[name]
                )
            )


def limits_of(quota: ProjectQuota) -> dict[str, int]:
    """Return the limit of each resource: the project's own, else the site's default."""
    limits = {name: getattr(quota, name) for name in RESOURCES}
    return {name: settings.QUOTAS[name] if limit is None else limit for name, limit in limits.items()}


def usage_of(project: str, names: Mapping[str, Any] | tuple[str, ...] = RESOURCES) -> dict[str, int]:
    """Return a project's usage of each resource: one query for servers, and one for stacks."""
    usage: dict[str, int] = {}
    if set(names) & {"servers", "vcpus", "memory"}:
        servers = Server.objects.present().filter(project_id=project)
        usage |= servers.aggregate(servers=Count("pk"), vcpus=Sum("vcpus", default=0), memory=Sum("memory", default=0))
    if "stacks" in names:
        usage["stacks"] = Stack.objects.present().filter(project_id=project, root=None).count()
    return usage


def require_cluster_quota(project: str) -> None:
    """Check that a project may have another cluster. Clusters without a project share one quota.

    Raises: `QuotaExceeded`.
    """
    limit = settings.QUOTAS["clusters"]
    if limit != UNLIMITED and (number := Cluster.objects.present().filter(project_id=project).count()) >= limit:
        counts = {"name": "clusters", "number": 1, "used": number, "limit": limit}
        raise QuotaExceeded((messages.PROJECT_QUOTA if project else messages.QUOTA).fill(project=project, **counts))


def require_metadata_quota(metadata: Mapping[str, Any] | None) -> None:
    """Check the number of metadata entries of one server. Raises: `QuotaExceeded`."""
    limit, number = settings.QUOTAS["metadata_items"], len(metadata or {})
    if UNLIMITED != limit < number:
        raise QuotaExceeded(messages.METADATA_QUOTA.fill(number=number, limit=limit))


@transaction.atomic
def set_quota(project: str, limits: Mapping[str, int | None]) -> ProjectQuota:
    """Set the limits of a project; None is the site's default, -1 is unlimited.

    Raises:
        Invalid: the message names the field and the rule.
    """
    checked_project(project)
    for name, limit in limits.items():
        if limit is not None and not UNLIMITED <= limit <= MAX_LIMIT:
            raise Invalid(messages.LIMIT_RULE.fill(field=name, most=MAX_LIMIT))
    quota, _ = ProjectQuota.objects.update_or_create(project_id=project, defaults=dict(limits))
    record("project.set_quota", project, details=dict(limits))
    return quota


def explain_foreign_project(project: str, site_project: str, has_trust: bool) -> str:
    """Return why no server can be created in a project, or "". ``site_project`` is that of its login."""
    if project == site_project or has_trust:
        return ""
    return messages.FOREIGN_PROJECT.fill(site_project=site_project, project=project)


def explain_refusal(project: str, has_trust: bool = False) -> str:
    """Return why the cloud can create no server in a project, or "", according to the last reading of the cloud.

    An empty project means that the cloud chooses it.
    """
    if not project or has_trust or not load_driver().is_mirrored:
        return ""
    site_project = Synchronization.current().project
    return (
        explain_foreign_project(project, site_project, has_trust) if site_project else messages.CLOUD_NOT_READ_YET.text
    )


def require_creatable(project: str, trust: Trust | None) -> None:
    """Raise `Conflict` if the cloud can create no server in a project, neither as the site nor by the trust."""
    if reason := explain_refusal(project, trust is not None and trust.failed_at is None):
        raise Conflict(f"project_id: {reason}.")
