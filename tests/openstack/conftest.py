"""The site on the control plane of `control_plane`, which is started once and filled with flavors and an image."""

from collections.abc import Callable, Iterator
from functools import partial
from io import StringIO
from pathlib import Path
from threading import Thread
from typing import Any

import openstack
import pytest
import yaml
from django.core.cache import caches
from django.core.management import call_command
from openstack.exceptions import HttpException, NotFoundException
from pytest_django import Settings
from xdist.scheduler import LoadScopeScheduling

from cluster.operations.synchronization import synchronize
from tests.openstack.configuration import COMPUTE_NODES, PASSWORD
from tests.openstack.control_plane import INTERVAL, NAMES, PATIENCE, ControlPlane
from tests.openstack.keystone import KeystoneService
from tests.waiting import wait_for
from watcher_site.keystone.tokens import middleware

# These files start a separate Keystone.
WITHOUT_CONTROL_PLANE = ("test_login.py", "test_dashboard.py", "test_register_endpoints.py", "test_tokens.py")
# Runs a function in a thread.
Background = Callable[[Callable[[], None]], None]
FLAVORS = {"tiny": (1, 512, 1), "small": (1, 2048, 10), "large": (4, 8192, 40)}


class Nova:
    """Nova, with connections of the service user and of a member of another project."""

    def __init__(self) -> None:
        self.service, self.member = (openstack.connect(cloud=name) for name in ("service", "member"))
        # The oldest microversion in which a server can be requested without a network, and be pinned to a host.
        for connection in (self.service, self.member):
            connection.compute.default_microversion = "2.90"

    @property
    def compute(self) -> Any:
        return self.service.compute

    def fill(self) -> None:
        """Create the image, the flavors and the aggregates unless they exist."""
        self.image = self.service.image.find_image("cirros")
        if self.image is None:
            formats = {"disk_format": "raw", "container_format": "bare", "visibility": "public"}
            self.image = self.service.image.create_image("cirros", data=b"\0" * 1024, wait=True, **formats)
        for name, (vcpus, ram, disk) in FLAVORS.items():
            self.flavor(name, vcpus, ram, disk)
        known = {found.name: found for found in self.compute.aggregates()}
        for host, zone in COMPUTE_NODES.items():
            if zone:
                aggregate = known.get(zone) or self.compute.create_aggregate(name=zone, availability_zone=zone)
                if host not in (aggregate.hosts or ()):
                    wait_for(partial(self.join, aggregate, host), PATIENCE, INTERVAL)

    def join(self, aggregate: Any, host: str) -> bool:
        """Add a host to an aggregate, and return whether Nova has it: the scheduler finds new hosts at intervals."""
        try:
            self.compute.add_host_to_aggregate(aggregate, host)
        except NotFoundException:
            return False
        return True

    def flavor(self, name: str, vcpus: int, ram: int, disk: int) -> Any:
        found = self.compute.find_flavor(name)
        return found or self.compute.create_flavor(name=name, vcpus=vcpus, ram=ram, disk=disk)

    def ask_for(self, name: str, flavor: str = "tiny", *, by: Any = None, **attributes: Any) -> Any:
        """Request a server, and return it when it is ACTIVE or in ERROR."""
        compute = (by or self.service).compute
        flavor_id = self.compute.find_flavor(flavor).id
        made = compute.create_server(
            name=name, flavor_id=flavor_id, image_id=self.image.id, networks="none", **attributes
        )
        found = made

        def is_settled() -> bool:
            nonlocal found
            found = self.show(made)
            return found.status in {"ACTIVE", "ERROR"} and not found.task_state

        wait_for(is_settled, PATIENCE, INTERVAL)
        return found

    def boot(self, name: str, host: str, flavor: str = "tiny", **attributes: Any) -> str:
        """Return the UUID of a new server that runs on a host."""
        made = self.ask_for(name, flavor, host=host, **attributes)
        assert (made.status, made.compute_host) == ("ACTIVE", host), made.fault
        return str(made.id)

    def show(self, server: Any) -> Any:
        return self.compute.get_server(server)

    def servers(self) -> list[Any]:
        return list(self.compute.servers(all_projects=True))

    def migrations(self, server: str) -> list[Any]:
        return [found for found in self.compute.migrations() if found.server_id == server]

    def states(self) -> dict[str, tuple[str, str]]:
        return {found.host: (found.status, found.state) for found in self.compute.services(binary="nova-compute")}

    def has_down_nodes(self) -> bool:
        return any(state != "up" for _, state in self.states().values())

    def is_down(self, host: str, control_plane: ControlPlane) -> bool:
        """Return whether a compute service that was killed or stopped is down; its last heartbeat may still arrive."""
        control_plane.expire_heartbeat(host)
        return self.states()[host] == ("enabled", "down")

    def hypervisors(self) -> set[str]:
        """Return the names of hypervisors in Nova: a compute service is up before its node is found in the cell."""
        return {found.name for found in self.compute.hypervisors()}

    def clear(self) -> None:
        """Enable each compute service, and delete the servers of all projects."""
        for service in self.compute.services(binary="nova-compute"):
            if service.status != "enabled":
                self.compute.enable_service(service.id)
        for server in self.servers():
            self.compute.delete_server(server)
        wait_for(lambda: not self.servers(), PATIENCE, INTERVAL)


class OneControlPlane(LoadScopeScheduling):
    """Runs the tests of the control plane in one process, and the files of other tests in any process."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return path if path.endswith(WITHOUT_CONTROL_PLANE) else "control plane"


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    return OneControlPlane(config, log) if config.getoption("dist") == "loadscope" else None


@pytest.fixture(autouse=True)
def patience(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set long timeouts, and leases longer than a test: the connection of heartbeats does not see rows of the test."""
    monkeypatch.setattr("watcher_site.keystone.login.TIMEOUT", PATIENCE)
    settings.OPENSTACK_TIMEOUT = PATIENCE
    settings.SERVICE_DOWN_TIME = 3600


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """Start the control plane unless it runs, and stop it after the tests if it did not run before."""
    found = ControlPlane()
    was_running = found.is_running
    found.start_all()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OS_CLIENT_CONFIG_FILE", str(found.clouds_yaml))
        try:
            yield found
        finally:
            if not was_running:
                found.stop_all()


@pytest.fixture(scope="session")
def filled(control_plane: ControlPlane) -> Nova:
    nova = Nova()
    nova.fill()
    return nova


@pytest.fixture
def nova(control_plane: ControlPlane, filled: Nova, settings: Settings, db: None) -> Nova:
    """A cloud of three nodes that are up, without servers, which the site uses and has read."""
    control_plane.start(NAMES)
    # An interrupted run may have left it.
    control_plane.hold_file("cmp1").unlink(missing_ok=True)
    wait_for(answers(filled), PATIENCE, INTERVAL)
    wait_for(lambda: filled.states() == dict.fromkeys(COMPUTE_NODES, ("enabled", "up")), PATIENCE, INTERVAL)
    wait_for(lambda: filled.hypervisors() == set(COMPUTE_NODES), PATIENCE, INTERVAL)
    settings.CLOUD = "cluster.drivers.openstack.OpenStackCloud"
    settings.OPENSTACK_CLOUD = "service"
    settings.OPENSTACK_POLL_INTERVAL = 0.5
    settings.OPENSTACK_OPERATION_TIMEOUT = PATIENCE
    synchronize()
    return filled


@pytest.fixture
def held(nova: Nova, control_plane: ControlPlane) -> Iterator[Path]:
    """A file that holds migrations from cmp1 while it exists."""
    file = control_plane.hold_file("cmp1")
    file.touch()
    yield file
    file.unlink(missing_ok=True)


@pytest.fixture
def background() -> Iterator[Background]:
    """Return a function that runs another function in a thread, which is joined after the test."""
    threads: list[Thread] = []

    def start(work: Callable[[], None]) -> None:
        threads.append(Thread(target=work))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join()


def answers(nova: Nova) -> Callable[[], bool]:
    """Return a function that clears the cloud and returns whether it succeeded; killed services may still be starting.

    The scheduler does not use a node that was enabled while it was down until the node next reports its resources.
    """

    def clear() -> bool:
        try:
            if nova.has_down_nodes():
                return False
            nova.clear()
        except HttpException:
            return False
        return True

    return clear


# A separate Keystone, without the other services.


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeystoneService]:
    found = KeystoneService(tmp_path_factory.mktemp("keystone"))
    found.start()
    try:
        found.fill()
        yield found
    finally:
        found.stop()


@pytest.fixture
def keystone(
    service: KeystoneService, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KeystoneService]:
    login = {
        "auth_url": f"{service.url}/v3",
        "username": "admin",
        "password": PASSWORD,
        "project_name": "admin",
        "user_domain_id": "default",
        "project_domain_id": "default",
    }
    clouds = {"clouds": {"admin": {"auth": login, "region_name": "RegionOne"}}}
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump(clouds))
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    settings.OPENSTACK_CLOUD = "admin"
    yield service
    identity = service.connect("admin", project_name="admin").identity
    for found in identity.services():
        if found.type != "identity":
            identity.delete_service(found)


@pytest.fixture
def registered_site(keystone: KeystoneService, settings: Settings, tmp_path: Path, live_server: Any) -> Iterator[str]:
    """The site on loopback, which accepts tokens of Keystone and is in its catalog."""
    settings.TOKEN_SOURCES = ["keystone"]
    settings.KEYSTONE_CONFIG = str(keystone.write_options(tmp_path / "watcher.conf"))
    middleware.cache_clear()
    caches["keystone"].clear()
    call_command("register_endpoints", live_server.url, stdout=StringIO())
    yield str(live_server.url)
    middleware.cache_clear()
