"""Other programs accept their configurations in the documentation, and the site accepts its documents."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
from django.core.management import CommandError, call_command
from django.urls import reverse
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from cluster.models import Sample, Server
from cluster.stacks.templates.templates import normalise
from tests.api import Caller
from tests.documentation.blocks import read_text
from tests.documentation.test_environments import read_options
from tests.openstack import configuration
from tests.processes import ROOT
from tests.waiting import wait_for
from tests.watcher_site.site_process import free_port_number, run

promtool = pytest.mark.programs("promtool")
nginx = pytest.mark.programs("nginx")
HOST = "watcher.example.org"


def check_with_promtool(file: Path) -> None:
    command = ["promtool", "check", "config", file]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


@promtool
def test_prometheus_accepts_the_documented_scrape_configuration(tmp_path: Path) -> None:
    text = read_text("docs/monitoring.md", "## Metrics", language="yaml")
    (tmp_path / "token").write_text("secret")
    (tmp_path / "prometheus.yml").write_text(text.replace("/etc/prometheus/watcher-token", str(tmp_path / "token")))
    check_with_promtool(tmp_path / "prometheus.yml")


@promtool
def test_prometheus_accepts_the_documented_rule_file(tmp_path: Path) -> None:
    text = read_text("docs/monitoring.md", "## Alerts", language="yaml")
    alerts = ROOT / "docs" / "monitoring" / "alerts.yml"
    (tmp_path / "prometheus.yml").write_text(text.replace("/etc/prometheus/watcher-alerts.yml", str(alerts)))
    check_with_promtool(tmp_path / "prometheus.yml")


@pytest.fixture
def proxy(live_server: LiveServer, tmp_path: Path) -> Iterator[str]:
    """Return the address of nginx with the documented configuration, in front of a site."""
    location = read_text("docs/operating.md", "## Installing for production", language="nginx")
    location = location.replace("http://127.0.0.1:8000", live_server.url)
    port = free_port_number()
    server = f"server {{ listen 127.0.0.1:{port}; {location} }}"
    folders = "".join(f"{name}_temp_path {tmp_path};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (tmp_path / "nginx.conf").write_text(
        f"daemon off; pid {tmp_path}/pid; events {{}} http {{ access_log off; {folders} {server} }}"
    )
    command = ["nginx", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf"), "-e", str(tmp_path / "errors")]
    with subprocess.Popen(command) as process:
        try:
            wait_for(lambda: responds(f"http://127.0.0.1:{port}/healthz"))
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def responds(url: str) -> bool:
    try:
        return requests.get(url, timeout=5).ok
    except requests.ConnectionError:
        return False


@nginx
@pytest.mark.slow
@pytest.mark.any_database
@pytest.mark.django_db(transaction=True)
def test_links_of_a_site_behind_the_documented_proxy_have_its_host(proxy: str, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = [HOST]
    response = requests.get(proxy, headers={"Host": HOST}, timeout=30)
    assert response.json()["versions"][0]["links"][0]["href"] == f"http://{HOST}/v1/"


def test_documented_notifications_of_nova_are_those_of_the_tests_with_nova(tmp_path: Path) -> None:
    documented = read_options(read_text("docs/openstack.md", "## Notifications of Nova and Cinder", language="ini"))
    tested = configuration.nova(tmp_path)
    values = {
        section: {name: value.partition(" #")[0].strip() for name, value in options.items()}
        for section, options in documented.items()
    }
    del values["oslo_messaging_notifications"]["transport_url"]
    assert {
        section: {name: tested[section].get(name) for name in options} for section, options in values.items()
    } == values


def test_documented_address_for_single_sign_on_is_the_one_of_the_site() -> None:
    text = read_text("docs/authentication.md", "### Single sign-on of Keystone", language="ini")
    url = read_options(text)["federation"]["trusted_dashboard"]
    assert urlsplit(url).path == reverse("login-sso-token")


@pytest.mark.django_db
def test_documented_template_of_a_stack_is_accepted() -> None:
    template = normalise(read_text("docs/stacks.md", "# Stacks", language="yaml"))
    assert template["resources"].keys() == {"database", "web", "reports"}


@pytest.mark.django_db
def test_documented_topology_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "cloud.json"
    file.write_text(read_text("docs/topology.md", "# Topology files", language="json"))
    call_command("load_topology", str(file), verbosity=0)
    assert Server.objects.get().name == "shop-1"


@pytest.mark.django_db
def test_documented_error_of_a_topology_is_the_one_of_the_command(tmp_path: Path) -> None:
    file = tmp_path / "cloud.json"
    servers = [{"name": f"shop-{number}", "node": "node-1", "vcpus": 1, "memory": 1, "disk": 1} for number in range(4)]
    servers[3]["node"] = "compute9"
    lines = ",\n".join(map(json.dumps, servers))
    node = json.dumps({"hostname": "node-1", "vcpus": 8, "memory": 8192, "disk": 100})
    file.write_text(f'{{"compute_nodes": [{node}],\n"servers": [\n\n{lines}]}}')
    with pytest.raises(CommandError) as refusal:
        call_command("load_topology", str(file))
    documented = read_text("docs/topology.md", "## Errors", language="text").strip()
    assert str(refusal.value) == documented.replace("cloud.json", str(file))


@pytest.mark.django_db
def test_documented_sample_is_loaded(tmp_path: Path) -> None:
    text = read_text("docs/metrics.md", "## Samples in the database", language="text")
    (tmp_path / "samples.json").write_text(text)
    call_command("load_metrics", str(tmp_path / "samples.json"), verbosity=0)
    assert Sample.objects.get().value == json.loads(text)["value"]


@pytest.mark.django_db
def test_documented_body_of_an_error_is_the_one_of_the_api(api: Caller) -> None:
    response = api.get("/goals/x")
    assert response.json() == json.loads(read_text("docs/api.md", "## Errors", language="json"))


def test_documented_error_of_a_missing_key_is_printed() -> None:
    # A short key has the same error. Without one, the site would use that which `make run` stored in this checkout.
    ended = run("manage.py", "check", SECRET_KEY="short")
    assert ended.stderr == read_text("docs/deployment.md", "# Deployment", language="")
