"""The interface of cloud drivers (`Cloud`), with its data classes and errors."""

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

from cluster.drivers.messages import WITHOUT_BALANCERS, WITHOUT_CONTENTS
from cluster.messages import (
    FLAVOR_NOT_FOUND,
    NO_VALID_HOST,
    NODE_NOT_FOUND,
    NOT_ENOUGH_HOSTS,
    POOL_NOT_FOUND,
    SERVER_NOT_FOUND,
    SERVICE_NOT_FOUND,
    VOLUME_NOT_FOUND,
    VOLUME_TYPE_NOT_FOUND,
    WAITING_FOR_CAPACITY,
)
from cluster.synchronization.cloud_contents import CloudContents
from watcher_site.monitoring.tracing import tracing

if TYPE_CHECKING:
    from cluster.drivers.balancing import Balancer

Checkpoint = Callable[[], None]


def proceed() -> None:
    """The default checkpoint, which never stops the operation."""


class CloudError(Exception):
    """A failed operation of the cloud; the message gives the reason to users."""


class CloudUnavailable(CloudError):
    """The cloud did not respond, or responded with a server error; a later request may succeed."""


class AnswerLost(CloudUnavailable):
    """The connection broke, or a proxy timed out, so the cloud may have accepted the request."""


class CloudMisconfigured(CloudError):
    """The connection settings of the cloud are invalid, or the cloud rejects them."""


class ServerNotFound(CloudError):
    def __init__(self, server: str) -> None:
        super().__init__(SERVER_NOT_FOUND.fill(name=server))


class ComputeServiceNotFound(CloudError):
    def __init__(self, host: str) -> None:
        super().__init__(SERVICE_NOT_FOUND.fill(name=host))


class NodeNotFound(CloudError):
    def __init__(self, node: str) -> None:
        super().__init__(NODE_NOT_FOUND.fill(name=node))


class FlavorNotFound(CloudError):
    def __init__(self, flavor: str) -> None:
        super().__init__(FLAVOR_NOT_FOUND.fill(name=flavor))


class VolumeNotFound(CloudError):
    def __init__(self, volume: str) -> None:
        super().__init__(VOLUME_NOT_FOUND.fill(name=volume))


class VolumeTypeNotFound(CloudError):
    def __init__(self, volume_type: str) -> None:
        super().__init__(VOLUME_TYPE_NOT_FOUND.fill(name=volume_type))


class PoolNotFound(CloudError):
    def __init__(self, pool: str) -> None:
        super().__init__(POOL_NOT_FOUND.fill(name=pool))


class NoValidHost(CloudError):
    """The scheduler found no host, or the requested node has not enough capacity."""

    def __init__(self, reason: str = NOT_ENOUGH_HOSTS.text) -> None:
        super().__init__(NO_VALID_HOST.fill(reason=reason))


class OperationRefused(CloudError):
    """The state of a server or another object forbids the operation."""


class CloudBusy(OperationRefused):
    """Another operation on the object is in progress; the caller may retry, at ``until`` if that is known."""

    until: datetime | None = None


class WaitingForCapacity(CloudBusy):
    """A requested server found no host, and is PENDING until there is enough capacity."""

    def __init__(self, server: str, until: datetime) -> None:
        super().__init__(WAITING_FOR_CAPACITY.fill(name=server))
        self.server, self.until = server, until


class OperationFailed(CloudError):
    """The operation began and failed."""


class OperationOutstanding(OperationFailed):
    """The driver stopped waiting for an operation that may still be in progress."""


@dataclass(frozen=True)
class CloudServer:
    """A server as the cloud reports it; ``status`` is Nova's status (ACTIVE, SHUTOFF), ``host`` a host name.

    ``flavor`` is the name of its flavor, or None if the cloud does not report it. A server with ``has_run`` can be
    rebuilt; one without can only be built.
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
    """A request for a server: ``flavor`` is an id or a name; ``zone`` and ``host`` restrict the scheduler, if given.

    ``token`` is the same in every process that requests this server, such as the UUID of the object that needs it.
    ``project`` and ``user`` will own the server, if the cloud allows a choice. In OpenStack the owner is the project
    of the login, or the project of ``trust`` (its id in Keystone), which is required for any other ``project``.
    ``properties`` are those of `cluster.drivers.server_properties`; a cloud without support for them ignores them.
    ``may_wait`` allows the server to be PENDING for lack of capacity, if `settings.USE_PENDING_STATE` is set and the
    cloud supports that.
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

    ``forced_down`` is true if an administrator or a fencing program forced the service down.
    """

    host: str
    status: str
    state: str
    disabled_reason: str | None
    forced_down: bool = False


@dataclass(frozen=True)
class CloudNode:
    """The physical machine of a compute node; ``power_state`` is on or off."""

    uuid: str
    hostname: str
    power_state: str
    running_servers: int


@dataclass(frozen=True)
class CloudVolume:
    """A volume: ``status`` is Cinder's status, ``pool`` a name, ``servers`` the UUIDs of the servers that use it."""

    uuid: str
    name: str
    status: str
    pool: str | None
    volume_type: str | None
    servers: tuple[str, ...] = ()


@dataclass(frozen=True)
class CloudPool:
    """A pool, with the names of the volume types that it accepts. Every pool accepts volumes without a type."""

    name: str
    volume_types: tuple[str, ...]


class Cloud(ABC):
    """The base class of cloud drivers.

    Servers, nodes and volumes are identified by UUID, compute services by host, all other objects by name.

    An operation returns when it has succeeded, and raises a `CloudError` if it has failed. Long operations call the
    ``checkpoint`` argument at intervals, outside of any transaction, and do not catch its exceptions;
    `abort_migration`, `reconcile` or `reconcile_volume` then return the object to a defined state.

    When a call returns, the site's tables contain the current state of the server, node, service or volume.
    """

    is_mirrored: ClassVar[bool] = False
    """Whether the site's tables are a copy of the cloud, which `read_contents` updates."""

    def read_contents(self, checkpoint: Checkpoint = proceed) -> CloudContents:
        """Return all objects of the cloud.

        Raises:
            CloudMisconfigured: the cloud exists only in the site's tables.
        """
        raise CloudMisconfigured(WITHOUT_CONTENTS.text)

    def make_balancer(self) -> "Balancer":
        """Return the driver of the cloud's load balancers.

        Raises:
            CloudMisconfigured: the cloud driver does not support load balancers.
        """
        raise CloudMisconfigured(WITHOUT_BALANCERS.text)

    @abstractmethod
    def find_server(self, server: str) -> CloudServer:
        """Return a server. Raises: `ServerNotFound`."""

    @abstractmethod
    def create_server(self, request: NewServer, checkpoint: Checkpoint = proceed) -> CloudServer:
        """Create a server and return it when it runs.

        A second call with the same token returns the existing server, or continues its interrupted creation. A failed
        creation leaves no server behind. `delete_server` ends an interrupted one.

        Raises:
            FlavorNotFound, NoValidHost: there is no such flavor, or not enough capacity.
            CloudBusy: another process is creating the server.
            WaitingForCapacity: the server is PENDING; a later call returns the result.
        """

    @abstractmethod
    def build_server(self, server: str, checkpoint: Checkpoint = proceed, host: str | None = None) -> None:
        """Build a server that never ran, on ``host`` or on a host that the scheduler chooses.

        Without a valid host, the server becomes ERROR, or PENDING if `settings.USE_PENDING_STATE` is set and capacity
        was the only problem. Repeating the call continues an interrupted build.

        Raises:
            ServerNotFound, OperationRefused: there is no such server, or it has run before.
            NoValidHost: there is not enough capacity for it.
            CloudBusy: another operation on it is in progress.
        """

    @abstractmethod
    def find_host(self, server: str) -> str | None:
        """Return a host with capacity for a server that never ran, according to the site's tables, or None.

        Raises:
            ServerNotFound: there is no such server.
        """

    @abstractmethod
    def reset_state(self, server: str, state: str, *, reason: str | None = None, expected: str | None = None) -> None:
        """Set the state of a server to ``active`` or ``error``, even if an operation is in progress.

        Args:
            reason: the reason of the error, if the cloud can store it.
            expected: the current status, as a precondition.

        Raises:
            ServerNotFound, OperationRefused: there is no such server, it cannot have this state, or it is not in the
                expected status.
        """

    @abstractmethod
    def find_created(self, name: str, token: str, project: str = "") -> CloudServer | None:
        """Return the server that was, or is being, created with this name and token, or None.

        Args:
            project: the project of the server, as in `NewServer`.
        """

    @abstractmethod
    def delete_server(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        """Delete a server, even if an operation on it is in progress. Raises: `ServerNotFound`."""

    @abstractmethod
    def find_compute_service(self, host: str) -> ComputeService:
        """Return the nova-compute service of a host. Raises: `ComputeServiceNotFound`."""

    @abstractmethod
    def live_migrate(self, server: str, destination: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        """Migrate a running server to a host, by default one that the scheduler chooses."""

    @abstractmethod
    def cold_migrate(self, server: str, destination: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        """Migrate a server with an interruption, and return it to its previous state."""

    @abstractmethod
    def evacuate(self, server: str, destination: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        """Rebuild a server of a failed host on another host, by default one that the scheduler chooses.

        Its UUID, addresses, volumes, flavor and metadata stay. A local disk is built from the image again, unless the
        hosts share it. A stopped server stays stopped, any other runs afterwards. An evacuation cannot be undone.

        The caller must know that the host is off: otherwise the server would run twice.

        Raises:
            ServerNotFound, OperationRefused: there is no such server, its host is up, or its state forbids it.
            NoValidHost: the destination, or every host, lacks capacity. The server may be in ERROR then.
            CloudBusy: another operation on it is in progress.
        """

    @abstractmethod
    def abort_migration(self, server: str, checkpoint: Checkpoint = proceed) -> CloudServer:
        """Abort the caller's own migration of a server, and return the server afterwards."""

    @abstractmethod
    def reconcile(self, server: str, checkpoint: Checkpoint = proceed) -> CloudServer:
        """End an interrupted operation of the caller on a server, and return the server afterwards.

        The operation may succeed or be undone. Operations of other callers continue.
        """

    @abstractmethod
    def stop(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        pass

    @abstractmethod
    def start(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        pass

    @abstractmethod
    def reboot_server(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        """Reboot a server, which may be stopped or in ERROR; it runs afterwards.

        Repeating the call continues an interrupted reboot.

        Raises:
            ServerNotFound, OperationRefused: there is no such server, or it was never built.
            CloudBusy: another operation on it is in progress.
        """

    @abstractmethod
    def rebuild_server(self, server: str, image: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        """Rebuild a server from ``image``, by default its own image. The data on its disk is lost.

        Its UUID, node, addresses, flavor and metadata stay. A server in ERROR runs afterwards; a stopped one stays
        stopped. Repeating the call continues an interrupted rebuild.

        Raises:
            ServerNotFound, OperationRefused: there is no such server, or it was never built.
            NoValidHost: the scheduler does not allow this image on the server's node.
            CloudBusy: another operation on it is in progress.
        """

    @abstractmethod
    def change_metadata(self, server: str, changed: Mapping[str, str], removed: Collection[str] = ()) -> None:
        """Set some metadata entries of a server and remove others. The operation is idempotent.

        Args:
            removed: names of entries.

        Raises:
            ServerNotFound, OperationRefused: there is no such server, or its state allows no change.
        """

    @abstractmethod
    def find_flavor(self, flavor: str) -> CloudFlavor:
        """Find a flavor by its id or its name. Raises: `FlavorNotFound`."""

    @abstractmethod
    def resize(self, server: str, flavor: str, checkpoint: Checkpoint = proceed) -> None:
        """Resize a server to the flavor with this id or name, and return it to its previous state."""

    @abstractmethod
    def find_node(self, node: str) -> CloudNode:
        """Return the physical machine of a compute node. Raises: `NodeNotFound`."""

    @abstractmethod
    def power_on(self, node: str, checkpoint: Checkpoint = proceed) -> None:
        pass

    @abstractmethod
    def power_off(self, node: str, checkpoint: Checkpoint = proceed, *, is_fencing: bool = False) -> None:
        """Switch off a node on which no server runs.

        Args:
            is_fencing: ignore the servers on it, but require that its compute service is down.

        Raises:
            NodeNotFound, OperationRefused: there is no such node, servers run on it, or it is up and must be fenced.
        """

    @abstractmethod
    def find_power_state(self, host: str) -> str | None:
        """Return "on" or "off" for the machine of a compute service, or None if that is unknown."""

    @abstractmethod
    def find_volume(self, volume: str) -> CloudVolume:
        """Return a volume. Raises: `VolumeNotFound`."""

    @abstractmethod
    def find_pool(self, pool: str) -> CloudPool:
        """Return a pool. Raises: `PoolNotFound`."""

    @abstractmethod
    def check_volume_type(self, volume_type: str) -> None:
        """Raise `VolumeTypeNotFound` if the cloud has no volume type of this name."""

    @abstractmethod
    def migrate_volume(self, volume: str, pool: str, checkpoint: Checkpoint = proceed) -> None:
        """Move a volume to a pool, ``host@backend#pool``."""

    @abstractmethod
    def retype_volume(self, volume: str, volume_type: str, checkpoint: Checkpoint = proceed) -> None:
        """Change the type of a volume. It moves to another pool if its own does not accept the type."""

    @abstractmethod
    def reconcile_volume(self, volume: str, checkpoint: Checkpoint = proceed) -> CloudVolume:
        """End an interrupted operation of the caller on a volume, and return the volume afterwards."""

    @abstractmethod
    def enable_compute_service(self, host: str) -> None:
        """Allow the scheduler to choose the host again."""

    @abstractmethod
    def disable_compute_service(self, host: str, reason: str | None = None) -> None:
        """Stop the scheduler from choosing the host; its servers stay."""


OVERRIDE: ContextVar[Cloud | None] = ContextVar("cloud_override", default=None)


def cloud() -> Cloud:
    """Return the process's driver of `settings.CLOUD`, or the cloud of the enclosing `using_cloud`."""
    return OVERRIDE.get() or load_driver()


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
    """Make `cloud` return a simulated cloud in this thread."""
    token = OVERRIDE.set(model)
    try:
        yield
    finally:
        OVERRIDE.reset(token)


def clear_driver_cache(*, setting: str, **_: Any) -> None:
    if setting == "CLOUD":
        load_driver.cache_clear()


setting_changed.connect(clear_driver_cache)
