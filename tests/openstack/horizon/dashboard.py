"""Horizon with watcher-dashboard, as PyPI has them, in an environment beside that of the control plane."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.openstack.control_plane import PATIENCE, ControlPlane, answers, install_requirements
from tests.openstack.keystone import reserve_port
from tests.waiting import wait_for

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
SETTINGS = """import os

ALLOWED_HOSTS = ["127.0.0.1"]
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
COMPRESS_OFFLINE = True
# Django serves the static files itself then.
DEBUG = True
OPENSTACK_KEYSTONE_URL = os.environ.get("KEYSTONE_URL", "")
SECRET_KEY = "a secret key of the tests"
"""


class Dashboard:
    """The Horizon service for one Keystone; Horizon reads all other addresses from the catalog."""

    def __init__(self, keystone: str, folder: Path) -> None:
        self.keystone, self.folder = keystone, folder
        self.environment = ControlPlane().folder / "horizon"
        self.port = reserve_port()
        self.url = f"http://127.0.0.1:{self.port.getsockname()[1]}"
        self.process: subprocess.Popen[bytes] | None = None

    def install(self) -> None:
        """Install the packages, and configure them as in their documentation, unless they are installed."""
        install_requirements(self.environment, REQUIREMENTS)
        [packages] = self.environment.glob("lib/*/site-packages")
        if (packages / "static" / "dashboard" / "manifest.json").exists():
            return
        local = packages / "openstack_dashboard" / "local"
        for panel in (packages / "watcher_dashboard" / "local" / "enabled").glob("_[0-9]*.py"):
            shutil.copy(panel, local / "enabled")
        policy = packages / "watcher_dashboard" / "conf" / "watcher_policy.yaml"
        shutil.copy(policy, packages / "openstack_dashboard" / "conf")
        (local / "local_settings.py").write_text(SETTINGS)
        compress = [self.environment / "bin" / "python", "-m", "django", "compress", "--force"]
        subprocess.run(compress, check=True, env=self.variables, capture_output=True)

    @property
    def variables(self) -> dict[str, str]:
        own = {"DJANGO_SETTINGS_MODULE": "openstack_dashboard.settings", "KEYSTONE_URL": f"{self.keystone}/v3"}
        return {**os.environ, "PYTHONPATH": "", **own}

    def start(self) -> None:
        """Start the service, and wait until it responds. It has one process, since sessions are in its memory."""
        port = self.url.rpartition(":")[2]
        settings = self.folder / "horizon.gunicorn.py"
        settings.write_text(f"bind = '127.0.0.1:{port}'\nthreads = 4\ntimeout = 300\ncontrol_socket_disable = True\n")
        command = [self.environment / "bin" / "gunicorn", "--config", settings, "openstack_dashboard.wsgi:application"]
        with (self.folder / "horizon.log").open("a") as log:
            self.process = subprocess.Popen(command, env=self.variables, stdout=log, stderr=log)
        wait_for(lambda: answers(f"{self.url}/auth/login/"), PATIENCE)

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
