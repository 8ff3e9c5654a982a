"""The quotas of projects, on a model of the cloud."""

from collections import Counter
from collections.abc import Iterable

from cluster.drivers.base import OperationRefused, load_driver
from cluster.drivers.quotas import QuotaExceeded, check_limits, demand_of, limits_of
from cluster.models import ProjectQuota, Server


class ForeseenQuotas:
    """The limits of all projects, read in one query when the first server is to be created in any of them."""

    def __init__(self) -> None:
        self.quotas: dict[str, ProjectQuota] | None = None

    def require(self, project: str, wanted: Server, servers: Iterable[Server]) -> None:
        """Check that a project, which has these servers among others, may have one more.

        Raises:
            OperationRefused: its quota does not allow it.
        """
        if not project or load_driver().is_mirrored:
            return
        if self.quotas is None:
            self.quotas = {quota.project_id: quota for quota in ProjectQuota.objects.all()}
        limits = limits_of(self.quotas.get(project) or ProjectQuota(project_id=project))
        demand = {name: number for name, number in demand_of(wanted.vcpus, wanted.memory).items() if limits[name] >= 0}
        if not demand:
            return
        usage: Counter[str] = Counter()
        for server in servers:
            if server.project_id == project:
                usage.update(demand_of(server.vcpus, server.memory))
        try:
            check_limits(project, {name: number for name, number in demand.items() if number}, usage, limits)
        except QuotaExceeded as problem:
            raise OperationRefused(str(problem)) from problem
