"""A policy that records the calls of its methods, and can refuse them."""

from typing import ClassVar

from cluster.models import Cluster
from cluster.policies.base import PolicyRefused, PolicyType


class Recording(PolicyType):
    name = "recording"
    description = "Records the calls of its methods."
    priority = 300
    targets = {}
    schema = {"type": "object", "properties": {"refuses": {"type": "boolean", "default": False}}}
    calls: ClassVar[list[str]] = []

    def attach(self, cluster: Cluster) -> None:
        self.note("attach")

    def detach(self, cluster: Cluster) -> None:
        self.note("detach")

    def note(self, what: str) -> None:
        if self.spec["refuses"]:
            raise PolicyRefused("not now")
        self.calls.append(what)


class Several(Recording):
    name = "several"
    is_single = False
