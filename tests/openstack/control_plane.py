"""A control plane on this machine: Keystone, Placement, Glance, Nova, Neutron and Cinder as PyPI has them.

The services are installed into a folder, which also holds their databases, images and logs. MariaDB's programs and a
RabbitMQ server have to be there. The compute services run Nova's fake driver: scheduling, claims, allocations,
migrations and the API are real, only the work of a hypervisor is not done. The backends of Cinder run its fake driver.
Neutron has no agents: it binds ports, and nobody plugs them. There is no Ironic or Octavia. All services listen on
127.0.0.1 alone.
"""

import argparse
import fcntl
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen
from uuid import NAMESPACE_DNS, uuid5

from tests.broker import broker_answers, delete_queues, has_consumer
from tests.openstack import configuration
from tests.openstack.configuration import (
    BACKENDS,
    CAPACITY,
    COMPUTE_NODES,
    DATABASES,
    DISK,
    MEMORY,
    PASSWORD,
    PORTS,
    TOPICS,
    URLS,
    VCPUS,
)
from tests.waiting import wait_for

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
REQUIREMENTS = HERE / "requirements.txt"
# The module and the variable by which gunicorn's process finds the configuration of a web service.
WEB_SERVICES = {
    "keystone": ("keystone.wsgi.api", "OS_KEYSTONE_CONFIG_DIR", "keystone"),
    "placement": ("placement.wsgi.api", "OS_PLACEMENT_CONFIG_DIR", "placement"),
    "glance": ("glance.wsgi.api", "OS_GLANCE_CONFIG_DIR", "glance"),
    "nova-api": ("nova.wsgi.osapi_compute", "OS_NOVA_CONFIG_DIR", "nova"),
    "neutron": ("neutron.wsgi.api", "OS_NEUTRON_CONFIG_DIR", "neutron"),
}
CINDER = ("cinder-scheduler", "cinder-volume", "cinder-api")
NAMES = (
    "mariadb",
    *WEB_SERVICES,
    "nova-conductor",
    "nova-scheduler",
    *COMPUTE_NODES,
    *CINDER,
)
# The queues from which services take calls of others. RabbitMQ discards a call whose queue does not exist, and its
# sender waits for minutes.
CALL_QUEUES = {
    "nova-conductor": ["conductor"],
    "nova-scheduler": ["scheduler"],
    **{host: [f"compute.{host}", f"compute-alt.{host}"] for host in COMPUTE_NODES},
    "cinder-scheduler": ["cinder-scheduler"],
    "cinder-volume": [f"cinder-volume.volumes@{backend}" for backend in BACKENDS],
}
# In seconds, for services and their operations: a machine that runs other tests starts Nova slowly.
PATIENCE = 900
# In seconds: services close connections that are idle for longer. A service does not repeat a request to another one
# that is closing the connection at that moment.
KEEP_ALIVE = 3600
# In seconds, between requests to a service that is waited for and does the work meanwhile.
INTERVAL = 0.5


class ControlPlane:
    """Keeps the PID of each service in a file, so that another process can find, stop and kill it."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or Path(os.environ.get("WATCHER_TEST_OPENSTACK_FOLDER") or ROOT / ".openstack")
        self.programs = self.folder / "environment" / "bin"
        self.files = self.folder / "configuration"

    @property
    def clouds_yaml(self) -> Path:
        return self.folder / "clouds.yaml"

    @property
    def is_running(self) -> bool:
        return all(self.find(name) for name in NAMES)

    # Installing.

    def install(self) -> None:
        """Install the services, unless that was done with the same requirements."""
        install_requirements(self.programs.parent, REQUIREMENTS)

    def prepare(self) -> None:
        """Create the databases with their tables, and Keystone's users and endpoints, unless that was done.

        An interrupted preparation begins again.
        """
        stamp, wanted = self.folder / "prepared", " ".join(DATABASES)
        if stamp.exists() and stamp.read_text() == wanted:
            return
        say("Creating the databases of the control plane: a minute or two.")
        for name in NAMES:
            if name != "mariadb":
                self.stop(name)
        for name in DATABASES:
            self.query(f"DROP DATABASE IF EXISTS {name}")
            self.query(f"CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8mb3")
        keystone, nova = self.files / "keystone" / "keystone.conf", self.files / "nova" / "nova.conf"
        me = ["--keystone-user", str(os.getuid()), "--keystone-group", str(os.getgid())]
        self.manage("keystone-manage", keystone, "db_sync")
        self.manage("keystone-manage", keystone, "fernet_setup", *me)
        self.manage("keystone-manage", keystone, "credential_setup", *me)
        urls = [f"--bootstrap-{kind}-url={configuration.AUTH_URL}" for kind in ("public", "internal")]
        password = f"--bootstrap-password={PASSWORD}"
        self.manage("keystone-manage", keystone, "bootstrap", password, "--bootstrap-region-id=RegionOne", *urls)
        self.manage("placement-manage", self.files / "placement" / "placement.conf", "db", "sync")
        self.manage("glance-manage", self.files / "glance" / "glance-api.conf", "db_sync")
        self.manage("nova-manage", nova, "api_db", "sync")
        cell0 = str(configuration.database("nova_cell0")["connection"])
        self.manage("nova-manage", nova, "cell_v2", "map_cell0", "--database_connection", cell0)
        self.manage("nova-manage", nova, "cell_v2", "create_cell", "--name", "cell1")
        self.manage("nova-manage", nova, "db", "sync")
        self.manage("cinder-manage", self.files / "cinder" / "cinder.conf", "db", "sync")
        self.manage("neutron-db-manage", self.files / "neutron" / "neutron.conf", "upgrade", "heads")
        self.query(*(agent(host) for host in COMPUTE_NODES))
        self.start(["keystone", "neutron"])
        environment = {**os.environ, "OS_CLIENT_CONFIG_FILE": str(self.clouds_yaml)}
        subprocess.run([sys.executable, "-m", "tests.openstack.catalog"], check=True, cwd=ROOT, env=environment)
        stamp.write_text(wanted)

    def manage(self, program: str, file: Path, *arguments: str) -> None:
        with (self.folder / "log" / "prepare.log").open("a") as log:
            command = [str(self.programs / program), "--config-file", str(file), *arguments]
            subprocess.run(command, check=True, stdout=log, stderr=log)

    def query(self, *statements: str) -> None:
        """Execute statements of SQL in one session."""
        code = (
            "import sys, pymysql; cursor = pymysql.connect(host='127.0.0.1', user='root', port=int(sys.argv[1]),"
            " autocommit=True).cursor(); [cursor.execute(statement) for statement in sys.argv[2:]]"
        )
        subprocess.run([self.programs / "python", "-c", code, str(PORTS["mariadb"]), *statements], check=True)

    # Running.

    def start_all(self) -> None:
        """Start the services that do not run, and return when they answer."""
        if missing := self.missing():
            raise RuntimeError(f"The control plane can not be started: {missing}.")
        for name in ("log", "run"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.install()
        configuration.write_all(self.folder)
        self.start(["mariadb"])
        self.prepare()
        say("Starting the control plane.")
        self.start(NAMES)

    def missing(self) -> str:
        """Return what this machine lacks to run it, or nothing."""
        if not shutil.which("mariadbd") or not shutil.which("mariadb-install-db"):
            return "the package mariadb-server is not installed"
        if not broker_answers():
            return "no RabbitMQ server answers at WATCHER_TEST_BROKER_URL"
        return ""

    def start(self, names: Iterable[str]) -> None:
        """Start the services that do not run, and return when they answer requests and take calls."""
        stopped = [name for name in names if not self.find(name)]
        for name in stopped:
            self.start_service(name)
        for name in stopped:
            self.wait(name, partial(self.takes_calls, name))

    def start_service(self, name: str) -> None:
        if name == "mariadb":
            self.start_database()
        elif name in WEB_SERVICES:
            self.start_web_service(name)
        elif name in COMPUTE_NODES:
            arguments = [self.folder, name, VCPUS, MEMORY, DISK]
            files = [self.files / "nova" / "nova.conf", self.files / f"{name}.conf"]
            script = [self.programs / "python", HERE / "compute_service.py", *arguments]
            self.run(name, [*script, *(f"--config-file={file}" for file in files)])
        elif name in CINDER:
            script = [self.programs / name]
            if name == "cinder-volume":
                script = [self.programs / "python", HERE / "volumes" / "volume_service.py", CAPACITY]
            self.run(name, [*script, f"--config-file={self.files / 'cinder' / 'cinder.conf'}"])
            if name == "cinder-api":
                self.wait(name, lambda: answers(URLS["cinder-api"]))
        else:
            self.run(name, [self.programs / name, f"--config-file={self.files / 'nova' / 'nova.conf'}"])

    @staticmethod
    def takes_calls(name: str) -> bool:
        return all(has_consumer(queue) for queue in CALL_QUEUES.get(name, ()))

    def start_database(self) -> None:
        """Start MariaDB, with options by which no write waits for the disk, as no data here is of value."""
        data = self.folder / "databases"
        if not data.exists():
            options = ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]
            subprocess.run(
                ["mariadb-install-db", "--no-defaults", f"--datadir={data}", *options], check=True, capture_output=True
            )
            shutil.rmtree(self.folder / "keys", ignore_errors=True)
            (self.folder / "prepared").unlink(missing_ok=True)
        options = [
            f"--datadir={data}",
            f"--socket={self.folder / 'run' / 'mariadb.sock'}",
            f"--port={PORTS['mariadb']}",
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--skip-log-bin",
            "--innodb-flush-log-at-trx-commit=0",
            "--max-connections=300",
        ]
        user = ["--user=root"] if os.getuid() == 0 else []
        self.run("mariadb", ["mariadbd", "--no-defaults", *options, *user])
        self.wait("mariadb", lambda: accepts_connections(PORTS["mariadb"]))

    def start_web_service(self, name: str) -> None:
        """Start a web service. The services parse the arguments of their process themselves: gunicorn gets none.

        Nova asks Neutron for the ports of 150 servers by one URL.
        """
        module, variable, files = WEB_SERVICES[name]
        settings = self.folder / "run" / f"{name}.gunicorn.py"
        settings.write_text(
            f"wsgi_app = '{module}:application'\nbind = '127.0.0.1:{PORTS[name]}'\nworkers = 1\nthreads = 8\n"
            f"timeout = 300\nkeepalive = {KEEP_ALIVE}\nlimit_request_line = 0\ncontrol_socket_disable = True\n"
        )
        environment = {variable: str(self.files / files), "GUNICORN_CMD_ARGS": f"--config {settings}"}
        self.run(name, [self.programs / "gunicorn"], environment)
        self.wait(name, lambda: answers(URLS[name]))

    def run(self, name: str, command: list[object], environment: dict[str, str] | None = None) -> None:
        with (self.folder / "log" / f"{name}.log").open("a") as log:
            process = subprocess.Popen(
                [str(part) for part in command],
                env={**os.environ, "no_proxy": "127.0.0.1", "PYTHONPATH": "", **(environment or {})},
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self.pid_file(name).write_text(str(process.pid))

    def wait(self, name: str, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end or not self.find(name):
                raise RuntimeError(f"{name} does not start: see {self.folder / 'log' / name}.log")
            time.sleep(0.5)

    # Its processes.

    def pid_file(self, name: str) -> Path:
        return self.folder / "run" / f"{name}.pid"

    def find(self, name: str) -> int | None:
        """Return the PID of a service that runs; it leads a process group of its own."""
        with suppress(FileNotFoundError, ValueError, ProcessLookupError):
            pid = int(self.pid_file(name).read_text())
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            os.killpg(pid, 0)
            return pid
        return None

    def send_signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to all processes of a service."""
        if pid := self.find(name):
            with suppress(ProcessLookupError):
                os.killpg(pid, number)

    def stop(self, name: str, number: signal.Signals = signal.SIGTERM) -> None:
        """Stop a service, and return when it and its queues have ended: after 20 seconds it is killed."""
        self.send_signal(name, number)
        end = time.monotonic() + 20
        while self.find(name):
            if time.monotonic() > end:
                self.send_signal(name, signal.SIGKILL)
            time.sleep(0.1)
        self.pid_file(name).unlink(missing_ok=True)
        wait_for(lambda: not any(has_consumer(queue) for queue in CALL_QUEUES.get(name, ())), PATIENCE, INTERVAL)

    def kill(self, name: str) -> None:
        self.stop(name, signal.SIGKILL)

    def hold_file(self, host: str) -> Path:
        """Return the path of a file that holds migrations from a host while it exists."""
        return self.folder / "state" / host / "held"

    def expire_heartbeat(self, host: str) -> None:
        """Set an old heartbeat for the nova-compute of a host, which was killed or stopped, so that it is down."""
        self.query(f"UPDATE nova.services SET last_seen_up = '2000-01-01' WHERE host = '{host}'")  # noqa: S608

    def stop_all(self) -> None:
        for name in reversed(NAMES):
            self.send_signal(name, signal.SIGTERM) if name != "mariadb" else None
        for name in reversed(NAMES):
            self.stop(name)
        # The services create these queues themselves, and the queues have no consumers.
        delete_queues([f"{topic}.{priority}" for topic in TOPICS.values() for priority in ("info", "error")])


def agent(host: str) -> str:
    """Return the statement that enters an agent of Open vSwitch on a host, which Neutron regards as alive forever."""
    columns = {
        "id": str(uuid5(NAMESPACE_DNS, f"agent of {host}")),
        "agent_type": "Open vSwitch agent",
        "binary": "neutron-openvswitch-agent",
        "topic": "N/A",
        "host": host,
        **dict.fromkeys(("created_at", "started_at"), "2000-01-01"),
        "heartbeat_timestamp": "9999-01-01",
        "configurations": '{"bridge_mappings": {}, "tunnel_types": []}',
        **dict.fromkeys(("admin_state_up", "load"), 1),
    }
    values = ", ".join(f"'{value}'" for value in columns.values())
    return f"INSERT INTO neutron.agents (`{'`, `'.join(columns)}`) VALUES ({values})"  # noqa: S608


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)  # noqa: T201


def install_requirements(environment: Path, requirements: Path) -> None:
    """Install pinned packages into a virtual environment, unless that was done with the same requirements."""
    stamp = environment.with_name(f"{environment.name}.installed")
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    with environment.with_name(f".{environment.name}.lock").open("w") as lock:
        # Another process of the suite may need the same environment.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == wanted:
            return
        say(f"Installing the packages of {requirements.relative_to(ROOT)} into {environment}: some minutes.")
        subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
        pip = [environment / "bin" / "pip", "install", "--quiet", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--requirement", requirements], check=True)
        stamp.write_text(wanted)


def accepts_connections(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True


def answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=10):  # noqa: S310 (a URL of our own)
            return True
    except HTTPError:
        return True
    except (URLError, OSError):
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description="Start or stop the control plane of OpenStack.")
    parser.add_argument("command", choices=["start", "stop"])
    plane = ControlPlane()
    if parser.parse_args().command == "start":
        plane.start_all()
    else:
        plane.stop_all()


if __name__ == "__main__":
    main()
