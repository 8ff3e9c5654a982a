"""A policy that notes what it is asked, and can refuse it."""

from typing import ClassVar

from cluster.models import Cluster
from cluster.policies.base import PolicyRefused, PolicyType


class Recording(PolicyType):
    name = "recording"
    description = "Notes what it is asked."
    priority = 300
    targets = {}
    schema = {"type": "object", "properties": {"refuses": {"type": "boolean", "default": False}}}
    asked: ClassVar[list[str]] = []

    def attach(self, cluster: Cluster) -> None:
        self.note("attach")

    def detach(self, cluster: Cluster) -> None:
        self.note("detach")

    def note(self, what: str) -> None:
        if self.spec["refuses"]:
            raise PolicyRefused("not now")
        self.asked.append(what)


class Several(Recording):
    name = "several"
    is_single = False
