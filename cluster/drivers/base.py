"""`Cloud`: the interface through which everything touches the cloud."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, ClassVar

from django.conf import settings
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from cluster.synchronization.cloud_contents import CloudContents
from watcher_site.monitoring.tracing import tracing

if TYPE_CHECKING:
    from cluster.drivers.balancing import Balancer

Checkpoint = Callable[[], None]


def proceed() -> None:
    """The checkpoint of an operation that nobody will stop."""


class CloudError(Exception):
    """An operation that the cloud could not do; the message says why, to the person who follows the action."""


class CloudUnavailable(CloudError):
    """The cloud did not answer, or with trouble of its own: it may answer the next time."""


class AnswerLost(CloudUnavailable):
    """The connection broke, or a proxy timed out: the cloud may be carrying the request out."""


class CloudMisconfigured(CloudError):
    """The settings for reaching the cloud make no sense, or the cloud rejects them."""


class ServerNotFound(CloudError):
    def __init__(self, server: str) -> None:
        super().__init__(f"Instance {server} not found")


class ComputeServiceNotFound(CloudError):
    def __init__(self, host: str) -> None:
        super().__init__(f"nova-compute service {host} not found")


class NodeNotFound(CloudError):
    def __init__(self, node: str) -> None:
        super().__init__(f"Compute node {node} not found")


class FlavorNotFound(CloudError):
    def __init__(self, flavor: str) -> None:
        super().__init__(f"Flavor {flavor} not found")


class VolumeNotFound(CloudError):
    def __init__(self, volume: str) -> None:
        super().__init__(f"Volume {volume} not found")


class VolumeTypeNotFound(CloudError):
    def __init__(self, volume_type: str) -> None:
        super().__init__(f"Volume type {volume_type} not found")


class PoolNotFound(CloudError):
    def __init__(self, pool: str) -> None:
        super().__init__(f"Pool {pool} not found")


class NoValidHost(CloudError):
    """The scheduler found no host, or the requested node has not enough capacity."""

    def __init__(self, reason: str = "There are not enough hosts available.") -> None:
        super().__init__(f"No valid host was found. {reason}")


class OperationRefused(CloudError):
    """The state of a server or another object forbids the operation."""


class CloudBusy(OperationRefused):
    """Another operation on the object is in progress: this one may begin later, at ``until`` if that is known."""

    until: datetime | None = None


class WaitingForCapacity(CloudBusy):
    """A requested server found no host, and is PENDING until there is enough capacity."""

    def __init__(self, server: str, until: datetime) -> None:
        super().__init__(f"Instance {server} waits for capacity")
        self.server, self.until = server, until


class OperationFailed(CloudError):
    """The operation began, and did not reach its end."""


class OperationOutstanding(OperationFailed):
    """The wait for an operation ended; the cloud may still be working on it."""


@dataclass(frozen=True)
class CloudServer:
    """A server as the cloud knows it now; ``status`` is Nova's word (ACTIVE, SHUTOFF), ``host`` a host name.

    ``flavor`` is the name of its flavor, where the cloud tells it. What ``has_run`` can be rebuilt, the rest be built.
    """

    uuid: str
    name: str
    status: str
    task_state: str | None
    host: str | None
    flavor: str | None = None
    has_run: bool = True


@dataclass(frozen=True)
class NewServer:
    """A server to create: ``flavor`` is an id or a name; ``zone`` and ``host`` name the required place, if any.

    ``token`` is the same in every process that requests this server, such as the UUID of the object that needs it.
    ``project`` and ``user`` own it, where the cloud lets us choose. In OpenStack the project of the login owns it, or
    that of a ``trust`` (its id in Keystone), which must be there for another ``project``.
    ``properties`` are those of `cluster.drivers.server_properties`, which a cloud that does not support them ignores.
    ``may_wait`` allows it to be PENDING for lack of capacity, if `settings.USE_PENDING_STATE` is set and the cloud
    supports that.
    """

    name: str
    flavor: str
    token: str
    image: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    zone: str | None = None
    host: str | None = None
    project: str = ""
    user: str = ""
    trust: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)
    may_wait: bool = False


@dataclass(frozen=True)
class CloudFlavor:
    flavor_id: str
    name: str


@dataclass(frozen=True)
class ComputeService:
    """The nova-compute service of a host; ``status`` is enabled or disabled, ``state`` up or down.

    ``forced_down`` is set if a person, or a program that fences hosts, forced the service down.
    """

    host: str
    status: str
    state: str
    disabled_reason: str | None
    forced_down: bool = False


@dataclass(frozen=True)
class CloudNode:
    """The machine under a compute node; ``power_state`` is on or off."""

    uuid: str
    hostname: str
    power_state: str
    running_servers: int


@dataclass(frozen=True)
class CloudVolume:
    """A volume; ``status`` is Cinder's word, ``pool`` a pool's name, ``servers`` the UUIDs that it is attached to."""

    uuid: str
    name: str
    status: str
    pool: str | None
    volume_type: str | None
    servers: tuple[str, ...] = ()


@dataclass(frozen=True)
class CloudPool:
    """A pool, and the names of the volume types that it takes beside volumes without type."""

    name: str
    volume_types: tuple[str, ...]


class Cloud(ABC):
    """The interface of clouds.

    Servers, nodes and volumes are named by UUID, compute services by host, everything else by name.

    Every operation returns when it is done and raises a `CloudError` if it could not be done. Long operations call the
    ``checkpoint`` argument at intervals, outside of any transaction, and let its exceptions through;
    `abort_migration`, `reconcile` or `reconcile_volume` then bring the object back to a defined state.

    When a call returns, our tables hold the server, node, service or volume as the driver read it, or as the operation
    left it.
    """

    is_mirrored: ClassVar[bool] = False
    """Whether our tables only mirror the cloud, and `read_contents` tells what they shall hold."""

    def read_contents(self, checkpoint: Checkpoint = proceed) -> CloudContents:
        """Read everything that there is.

        Raises:
            CloudMisconfigured: our tables do not mirror this cloud, but are all that there is.
        """
        raise CloudMisconfigured("WATCHER_CLOUD: this cloud lives in our own tables: nothing is read into them.")

    def make_balancer(self) -> "Balancer":
        """Return what balances the load of this cloud.

        Raises:
            CloudMisconfigured: nothing does, that this driver knows of.
        """
        raise CloudMisconfigured("WATCHER_CLOUD: the driver of this cloud knows of no load balancers.")

    @abstractmethod
    def find_server(self, server: str) -> CloudServer:
        """Raises: `ServerNotFound`."""

    @abstractmethod
    def create_server(self, wanted: NewServer, checkpoint: Checkpoint = proceed) -> CloudServer:
        """Create a server, or continue its creation, and return it when it runs.

        A call with the same token creates no second server, but returns the existing one. A creation that fails leaves
        no server behind; one that was interrupted is continued, or ended by `delete_server`.

        Raises:
            FlavorNotFound, NoValidHost: there is no such flavor, or not enough capacity.
            CloudBusy: another process is creating it.
            WaitingForCapacity: it is PENDING, and stays so; a later call returns the outcome.
        """

    @abstractmethod
    def build_server(self, server: str, checkpoint: Checkpoint = proceed, host: str | None = None) -> None:
        """Start a server that never ran on a free host, or on ``host``.

        A server that finds no host is in ERROR, or PENDING if `settings.USE_PENDING_STATE` is set and there was no
        other problem. A build that was interrupted is continued by repeating the call.

        Raises:
            ServerNotFound, OperationRefused: there is no such server, or it has run before.
            NoValidHost: there is not enough capacity for it.
            CloudBusy: another operation on it is in progress.
        """

    @abstractmethod
    def find_host(self, server: str) -> str | None:
        """Return a host that has capacity for a server that never ran, by the site's tables, or None.

        Raises:
            ServerNotFound: there is no such server.
        """

    @abstractmethod
    def reset_state(self, server: str, state: str, *, reason: str | None = None, expected: str | None = None) -> None:
        """Write down that a server is ``active`` or in ``error``, whatever is under way on it.

        Args:
            reason: why it is in error, where the cloud can note that.
            expected: the status that it must be in.

        Raises:
            ServerNotFound, OperationRefused: there is none, it cannot be so, or it is in another status.
        """

    @abstractmethod
    def find_created(self, name: str, token: str, project: str = "") -> CloudServer | None:
        """Return the server of this name that was, or is being, created with a token, if there is one.

        Args:
            project: that it was created in, as in `NewServer`.
        """

    @abstractmethod
    def delete_server(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        """Delete a server, whatever is under way on it. Raises: `ServerNotFound`."""

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
    def evacuate(self, server: str, destination: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        """Build a server on another host in the place of its own, which is down: also without a destination.

        Its UUID, addresses, volumes, flavor and metadata stay; a local disk is built from the image again, unless the
        hosts share it. A stopped server stays stopped, any other runs afterwards. Nothing undoes an evacuation.

        The caller knows that the host is off: on one that runs, the server would run twice.

        Raises:
            ServerNotFound, OperationRefused: there is no such server, its host is up, or its state forbids it.
            NoValidHost: the destination, or every host, has not enough capacity. The server may be in ERROR then.
            CloudBusy: another operation on it is in progress.
        """

    @abstractmethod
    def abort_migration(self, server: str, checkpoint: Checkpoint = proceed) -> CloudServer:
        """Give up one's own migration under way, and return the server as it then is."""

    @abstractmethod
    def reconcile(self, server: str, checkpoint: Checkpoint = proceed) -> CloudServer:
        """Bring one's own operation that nobody waits for any more to an end, and return the server as it then is.

        That end may be what the operation was for. An operation that is another's goes on.
        """

    @abstractmethod
    def stop(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        pass

    @abstractmethod
    def start(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        pass

    @abstractmethod
    def reboot_server(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        """Reboot a server, also one that is stopped or broken; it runs afterwards.

        A reboot that was interrupted is continued by repeating the call.

        Raises:
            ServerNotFound, OperationRefused: there is no such server, or it was never built.
            CloudBusy: another operation on it is in progress.
        """

    @abstractmethod
    def rebuild_server(self, server: str, image: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        """Rebuild a server from ``image``, or from its own image. The data on its disk is lost.

        Its UUID, node, addresses, flavor and metadata stay. A broken server runs afterwards; a stopped one stays
        stopped. A rebuild that was interrupted is continued by repeating the call.

        Raises:
            ServerNotFound, OperationRefused: there is no such server, or it was never built.
            NoValidHost: its node may not have this image.
            CloudBusy: another operation on it is in progress.
        """

    @abstractmethod
    def change_metadata(self, server: str, changed: Mapping[str, str], removed: Collection[str] = ()) -> None:
        """Set some metadata of a server, and remove that of these names; the rest stays. The operation is idempotent.

        Raises:
            ServerNotFound, OperationRefused: there is none, or the cloud allows no change in its state.
        """

    @abstractmethod
    def find_flavor(self, flavor: str) -> CloudFlavor:
        """Find a flavor by its id or its name. Raises: `FlavorNotFound`."""

    @abstractmethod
    def resize(self, server: str, flavor: str, checkpoint: Checkpoint = proceed) -> None:
        """Give a server the size of a flavor, named by id or name; it then is in the state it was in before."""

    @abstractmethod
    def find_node(self, node: str) -> CloudNode:
        """Raises: `NodeNotFound`."""

    @abstractmethod
    def power_on(self, node: str, checkpoint: Checkpoint = proceed) -> None:
        pass

    @abstractmethod
    def power_off(self, node: str, checkpoint: Checkpoint = proceed, *, is_fencing: bool = False) -> None:
        """Switch off a node that no server runs on.

        Args:
            is_fencing: switch it off whatever is on it, as its compute service is down.

        Raises:
            NodeNotFound, OperationRefused: there is no such node, servers run on it, or it is up and is to be fenced.
        """

    @abstractmethod
    def find_power_state(self, host: str) -> str | None:
        """Return whether the machine of a compute service is on or off; None, if nothing knows that."""

    @abstractmethod
    def find_volume(self, volume: str) -> CloudVolume:
        """Raises: `VolumeNotFound`."""

    @abstractmethod
    def find_pool(self, pool: str) -> CloudPool:
        """Raises: `PoolNotFound`."""

    @abstractmethod
    def check_volume_type(self, volume_type: str) -> None:
        """Raises: `VolumeTypeNotFound`."""

    @abstractmethod
    def migrate_volume(self, volume: str, pool: str, checkpoint: Checkpoint = proceed) -> None:
        """Move a volume to a pool, ``host@backend#pool``."""

    @abstractmethod
    def retype_volume(self, volume: str, volume_type: str, checkpoint: Checkpoint = proceed) -> None:
        """Give a volume another type; it moves where its pool does not take that type."""

    @abstractmethod
    def reconcile_volume(self, volume: str, checkpoint: Checkpoint = proceed) -> CloudVolume:
        """Bring one's own operation that nobody waits for any more to an end, and return the volume as it then is."""

    @abstractmethod
    def enable_compute_service(self, host: str) -> None:
        """Allow the scheduler to choose the host again."""

    @abstractmethod
    def disable_compute_service(self, host: str, reason: str | None = None) -> None:
        """Keep new servers off the host; those on it stay."""


STAND_IN: ContextVar[Cloud | None] = ContextVar("stand_in", default=None)


def cloud() -> Cloud:
    """Return the cloud that `settings.CLOUD` names, the same one for the whole process, or what stands in for it."""
    return STAND_IN.get() or load_driver()


@cache
def load_driver() -> Cloud:
    driver: Cloud = import_string(settings.CLOUD)()
    if settings.TRACING:
        trace_operations(driver)
    return driver


def trace_operations(driver: Cloud) -> None:
    """Record each operation of a driver as a span."""

    def traced(name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(operation)
        def call(*arguments: Any, **options: Any) -> Any:
            with tracing.span(f"cloud {name}", {"watcher.cloud": type(driver).__name__}):
                return operation(*arguments, **options)

        return call

    for name in (*Cloud.__abstractmethods__, "read_contents"):
        setattr(driver, name, traced(name, getattr(driver, name)))


@contextmanager
def using_cloud(model: Cloud) -> Iterator[None]:
    """Redirect all calls of this thread to the cloud to a model of it."""
    token = STAND_IN.set(model)
    try:
        yield
    finally:
        STAND_IN.reset(token)


def clear_driver_cache(*, setting: str, **_: Any) -> None:
    if setting == "CLOUD":
        load_driver.cache_clear()


setting_changed.connect(clear_driver_cache)
