"""The metrics of the processes of docs/deployment, and the scrape configurations for them."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deployment.test_containers import SITE
from tests.deployment.test_kubernetes import container, find, pods
from tests.processes import ROOT
from watcher_site import settings

MONITORING = ROOT / "docs" / "monitoring"
CONFIGURATIONS = ("prometheus-compose.yml", "prometheus-kubernetes.yml")
# The services that the files of docs/deployment start.
PROCESSES = ("web", "applier", "decision-engine", "relay", "worker")
kubectl = pytest.mark.skipif(not shutil.which("kubectl"), reason="needs a kubectl newer than that of Debian 12")


def ports_of(text: str) -> dict[str, list[int]]:
    """Return the ports of each service in a value of WATCHER_METRICS_PORTS."""
    found = {}
    for entry in text.split(","):
        name, _, ports = entry.partition("=")
        first, _, last = ports.partition("-")
        found[name] = list(range(int(first), int(last or first) + 1))
    return found


def metrics_ports(name: str) -> list[dict[str, Any]]:
    """Return the ports of a Deployment's pods that Prometheus discovers by their names."""
    return [port for port in container(pods()[name])["ports"] if port["name"].startswith("metrics")]


def processes(name: str) -> dict[str, Any]:
    jobs = yaml.safe_load((MONITORING / name).read_text())["scrape_configs"]
    (job,) = [job for job in jobs if job["job_name"] == "watcher-processes"]
    return dict(job)


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.programs("promtool")
def test_prometheus_accepts_the_scrape_configurations(name: str, tmp_path: Path) -> None:
    configuration = yaml.safe_load((MONITORING / name).read_text())
    for job in configuration["scrape_configs"]:
        # Debian's promtool is built without the discovery of Kubernetes.
        job.pop("kubernetes_sd_configs", None)
    copy = tmp_path / name
    copy.write_text(yaml.safe_dump(configuration))
    checked = subprocess.run(
        ["promtool", "check", "config", "--syntax-only", copy], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def test_scrape_configuration_covers_all_ports_of_the_compose_file() -> None:
    ports = ports_of(SITE["applier"]["environment"]["WATCHER_METRICS_PORTS"])
    found: dict[str, list[int]] = {}
    for lookup in processes("prometheus-compose.yml")["dns_sd_configs"]:
        found.setdefault(lookup["names"][0], []).append(lookup["port"])
    assert found == {name: ports[name] for name in PROCESSES}
    assert found.keys() <= SITE.keys()


def test_metrics_ports_of_the_compose_file_are_not_published() -> None:
    assert [name for name in PROCESSES if "ports" in SITE[name]] == []
    assert {name for name in PROCESSES if "backend" not in SITE[name]["networks"]} == set()


@kubectl
def test_pods_declare_the_metrics_ports_of_their_processes() -> None:
    (configuration,) = find("ConfigMap").values()
    ports = ports_of(configuration["data"]["WATCHER_METRICS_PORTS"])
    found = {name: [port["containerPort"] for port in metrics_ports(name)] for name in PROCESSES}
    assert found == {name: ports[name] for name in PROCESSES}
    assert len(ports["worker"]) >= settings.WORKER_PROCESSES


@kubectl
def test_pods_are_annotated_for_scraping() -> None:
    for name in PROCESSES:
        metadata = find("Deployment")[name]["spec"]["template"]["metadata"]
        assert metadata["annotations"]["prometheus.io/scrape"] == "true"


@kubectl
def test_network_policy_admits_prometheus_to_all_metrics_ports() -> None:
    policy = find("NetworkPolicy")["metrics"]["spec"]
    (excluded,) = policy["podSelector"]["matchExpressions"]
    ((admitted,),) = [rule["ports"] for rule in policy["ingress"]]
    ports = [port["containerPort"] for name in PROCESSES for port in metrics_ports(name)]
    assert set(excluded["values"]).isdisjoint(PROCESSES)
    assert admitted["port"] <= min(ports)
    assert max(ports) <= admitted["endPort"]


@kubectl
def test_network_policy_does_not_admit_prometheus_to_the_site() -> None:
    ((admitted,),) = [rule["ports"] for rule in find("NetworkPolicy")["metrics"]["spec"]["ingress"]]
    (http,) = [port["containerPort"] for port in container(pods()["web"])["ports"] if port["name"] == "http"]
    assert not admitted["port"] <= http <= admitted["endPort"]
