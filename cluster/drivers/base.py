"""`Cloud`: the interface through which everything touches the cloud."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

Checkpoint = Callable[[], None]


def proceed() -> None:
    """The checkpoint of an operation that nobody will stop."""


class CloudError(Exception):
    """An operation that the cloud could not do; the message says why, to the person who follows the action."""


class ServerNotFound(CloudError):
    def __init__(self, server: str) -> None:
        super().__init__(f"Instance {server} not found")


class ComputeServiceNotFound(CloudError):
    def __init__(self, host: str) -> None:
        super().__init__(f"nova-compute service {host} not found")


class NoValidHost(CloudError):
    """The scheduler, or the node that was asked for, has no room."""

    def __init__(self, reason: str = "There are not enough hosts available.") -> None:
        super().__init__(f"No valid host was found. {reason}")


class OperationRefused(CloudError):
    """The cloud will not begin the operation in the state that things are in."""


class OperationFailed(CloudError):
    """The operation began, and did not reach its end."""


@dataclass(frozen=True)
class CloudServer:
    """A server as the cloud knows it now; ``status`` is Nova's word (ACTIVE, SHUTOFF), ``host`` a host name."""

    uuid: str
    name: str
    status: str
    task_state: str | None
    host: str | None


@dataclass(frozen=True)
class ComputeService:
    """The nova-compute service of a host; ``status`` is enabled or disabled, ``state`` up or down."""

    host: str
    status: str
    state: str
    disabled_reason: str | None


class Cloud(ABC):
    """A cloud. Servers are named by UUID, compute services by host name.

    Every operation returns when it is done and raises a `CloudError` if it could not be done. Long ones call the
    ``checkpoint`` that they are given every now and then, outside of any transaction, and let what it raises
    through; `abort_migration` or `reconcile` then bring the server back to a state that can be told.
    """

    @abstractmethod
    def find_server(self, server: str) -> CloudServer:
        """Raises: `ServerNotFound`."""

    @abstractmethod
    def find_compute_service(self, host: str) -> ComputeService:
        """Raises: `ComputeServiceNotFound`."""

    @abstractmethod
    def live_migrate(self, server: str, destination: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        """Move a running server to a host, or without a destination to one that the scheduler chooses."""

    @abstractmethod
    def cold_migrate(self, server: str, destination: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        """Move a server that may be interrupted; it then is in the state it was in before."""

    @abstractmethod
    def abort_migration(self, server: str) -> CloudServer:
        """Give up a migration under way, and return the server as it then is."""

    @abstractmethod
    def reconcile(self, server: str) -> CloudServer:
        """Bring an operation that nobody waits for any more to an end, and return the server as it then is."""

    @abstractmethod
    def stop(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        pass

    @abstractmethod
    def start(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        pass

    @abstractmethod
    def enable_compute_service(self, host: str) -> None:
        """Let the scheduler choose the host again."""

    @abstractmethod
    def disable_compute_service(self, host: str, reason: str | None = None) -> None:
        """Keep new servers off the host; those on it stay."""


@cache
def cloud() -> Cloud:
    """Return the cloud that `settings.CLOUD` names, the same one for the whole process."""
    driver: Cloud = import_string(settings.CLOUD)()
    return driver


def forget(*, setting: str, **_: Any) -> None:
    if setting == "CLOUD":
        cloud.cache_clear()


setting_changed.connect(forget)
