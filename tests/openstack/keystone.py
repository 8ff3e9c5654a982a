"""A Keystone on SQLite: it starts in seconds, without the rest of the control plane.

``make openstack`` runs it from the environment of the control plane, ``make keystone`` from one of its own.
"""

import os
import signal
import socket
import subprocess
from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import openstack

from tests.openstack.configuration import PASSWORD, write
from tests.openstack.control_plane import KEEP_ALIVE, PATIENCE, ROOT, ControlPlane, answers
from tests.waiting import wait_for


class KeystoneService:
    """The service in a folder, with the user watcher, whom the site logs in as, in the project service.

    Args:
        dashboard: the page that gets tokens of the single sign-on; without it there is none.
    """

    def __init__(self, folder: Path, dashboard: str = "") -> None:
        self.programs, self.folder = find_programs(), folder
        self.port = reserve_port()
        self.url = f"http://127.0.0.1:{self.port.getsockname()[1]}"
        self.process: subprocess.Popen[bytes] | None = None
        self.dashboard = dashboard
        self.configure()

    def configure(self, lifetime: int = 3600) -> None:
        """Write the configuration, with the lifetime of new tokens in seconds, which the next start reads."""
        federation = self.federation_options(self.dashboard) if self.dashboard else {}
        write(self.folder / "keystone.conf", {**self.options(lifetime), **federation})

    def options(self, lifetime: int) -> dict[str, dict[str, object]]:
        keys = self.folder / "keys"
        return {
            "DEFAULT": {"log_file": self.folder / "keystone.log"},
            "database": {"connection": f"sqlite:///{self.folder / 'keystone.sqlite'}"},
            "token": {"provider": "fernet", "expiration": lifetime, "allow_expired_window": 3600},
            "fernet_tokens": {"key_repository": keys / "fernet"},
            "fernet_receipts": {"key_repository": keys / "receipts"},
            "credential": {"key_repository": keys / "credential"},
            # In the memory of its one process.
            "cache": {"enabled": True, "backend": "dogpile.cache.memory"},
            "identity": {"password_hash_rounds": 4},
        }

    def federation_options(self, dashboard: str) -> dict[str, dict[str, object]]:
        """Return the options of a single sign-on whose identity provider's module sends its findings as headers."""
        template = self.programs.parent / "etc" / "keystone" / "sso_callback_template.html"
        federation = {"trusted_dashboard": dashboard, "sso_callback_template": template}
        return {
            "auth": {"methods": "password,token,openid"},
            "federation": {**federation, "remote_id_attribute": "HTTP_OIDC_ISS", "assertion_prefix": "HTTP_OIDC"},
        }

    def federate(self, issuer: str) -> None:
        """Let the people of an identity provider log in by the protocol openid, as admins of the project shop."""
        identity = self.connect("admin", project_name="admin").identity
        group = identity.create_group(name="people of staff", domain_id="default")
        [role] = identity.roles(name="admin")
        identity.assign_project_role_to_group(self.project, group, role)
        identity.create_identity_provider(id="staff", is_enabled=True, remote_ids=[issuer])
        local = [{"user": {"name": "{0}"}, "group": {"id": group.id}}]
        identity.create_mapping(id="people", rules=[{"local": local, "remote": [{"type": "HTTP_OIDC_NAME"}]}])
        identity.create_federation_protocol("staff", id="openid", mapping_id="people")

    def start(self) -> None:
        """Create the database and the keys on the first start, and return when the service answers."""
        if not (self.folder / "keys").exists():
            for name in ("fernet", "receipts", "credential"):
                write_keys(self.folder / "keys" / name)
            self.manage("db_sync")
            urls = [f"--bootstrap-{kind}-url={self.url}/v3" for kind in ("public", "internal")]
            self.manage("bootstrap", f"--bootstrap-password={PASSWORD}", "--bootstrap-region-id=RegionOne", *urls)
        port = self.url.rpartition(":")[2]
        settings = self.folder / "gunicorn.py"
        settings.write_text(
            f"wsgi_app = 'keystone.wsgi.api:application'\nbind = '127.0.0.1:{port}'\nworkers = 1\nthreads = 4\n"
            f"timeout = 300\nkeepalive = {KEEP_ALIVE}\ncontrol_socket_disable = True\n"
        )
        with (self.folder / "gunicorn.log").open("a") as log:
            self.process = subprocess.Popen(
                [str(self.programs / "gunicorn")],
                env={
                    **os.environ,
                    "PYTHONPATH": "",
                    "OS_KEYSTONE_CONFIG_DIR": str(self.folder),
                    "GUNICORN_CMD_ARGS": f"--config {settings}",
                },
                stdout=log,
                stderr=log,
            )
        wait_for(lambda: answers(self.url), PATIENCE)

    def stop(self) -> None:
        if self.process is not None:
            # SIGTERM would wait for idle connections.
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()
            self.process = None

    def manage(self, *arguments: str) -> None:
        program = [str(self.programs / "keystone-manage"), "--config-dir", str(self.folder)]
        subprocess.run([*program, *arguments], check=True, capture_output=True)

    def connect(self, user: str, **scope: str) -> Any:
        """Return a connection of a user in a scope: ``project_name``, ``system_scope`` or ``domain_id``, or none."""
        if "project_name" in scope:
            scope["project_domain_id"] = "default"
        login = {"auth_url": f"{self.url}/v3", "username": user, "password": PASSWORD, "user_domain_id": "default"}
        return openstack.connect(
            load_yaml_config=False, load_envvars=False, region_name="RegionOne", auth={**login, **scope}
        )

    def token(self, user: str, **scope: str) -> str:
        return str(self.connect(user, **scope).session.get_token())

    def expiring_token(self, user: str, seconds: int) -> str:
        """Return a token of a user in the project shop that expires soon, as its application credential does."""
        identity = self.connect(user, project_name="shop").identity
        ends = datetime.now(UTC) + timedelta(seconds=seconds)
        credential = identity.create_application_credential(
            self.users[user], name=f"until {ends}", expires_at=f"{ends:%Y-%m-%dT%H:%M:%S}"
        )
        found = openstack.connect(
            load_yaml_config=False,
            load_envvars=False,
            auth_type="v3applicationcredential",
            auth={
                "auth_url": f"{self.url}/v3",
                "application_credential_id": credential.id,
                "application_credential_secret": credential.secret,
            },
        )
        return str(found.session.get_token())

    def fill(self) -> None:
        """Create the user of the site, and rosa, ines and rob with roles in the project shop."""
        identity = self.connect("admin", project_name="admin").identity
        service, shop = (identity.create_project(name=name, domain_id="default") for name in ("service", "shop"))
        self.project = str(shop.id)
        roles = {role.name: role for role in identity.roles()}
        roles["auditor"] = identity.create_role(name="auditor")
        people = {"rosa": "admin", "ines": "member", "rob": "reader", "otto": "auditor"}
        self.users = {}
        for name, role in people.items():
            user = identity.create_user(name=name, domain_id="default", password=PASSWORD)
            identity.assign_project_role_to_user(shop, user, roles[role])
            self.users[name] = str(user.id)
        watcher = identity.create_user(name="watcher", domain_id="default", password=PASSWORD)
        for name in ("admin", "service"):
            identity.assign_project_role_to_user(service, watcher, roles[name])
        identity.assign_system_role_to_user(self.users["rob"], roles["reader"], "all")
        identity.assign_domain_role_to_user("default", self.users["rosa"], roles["admin"])

    def write_options(self, file: Path, **options: object) -> Path:
        login = {
            "auth_type": "password",
            "auth_url": f"{self.url}/v3",
            "www_authenticate_uri": f"{self.url}/v3",
            "username": "watcher",
            "password": PASSWORD,
            "project_name": "service",
            "user_domain_id": "default",
            "project_domain_id": "default",
            "http_connect_timeout": PATIENCE,
        }
        write(file, {"keystone_authtoken": {**login, **options}})
        return file


def write_keys(folder: Path) -> None:
    """Write a staged and a primary key, as ``keystone-manage fernet_setup`` does, which takes seconds to start."""
    folder.mkdir(parents=True, mode=0o700)
    for number in range(2):
        (folder / str(number)).write_bytes(urlsafe_b64encode(os.urandom(32)))


def reserve_port() -> socket.socket:
    """Return a socket whose port no other process gets, also while the service that listens on it is stopped."""
    port = socket.socket()
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    port.bind(("127.0.0.1", 0))
    return port


def find_programs() -> Path:
    """Return the folder with the programs of Keystone, which are installed if that is not the task of make."""
    if os.environ.get("WATCHER_TEST_OPENSTACK") != "1":
        return ROOT / ".openstack" / "keystone" / "bin"
    plane = ControlPlane()
    plane.folder.mkdir(parents=True, exist_ok=True)
    plane.install()
    return plane.programs
