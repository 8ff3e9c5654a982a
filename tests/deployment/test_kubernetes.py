"""The manifests of docs/deployment/kubernetes, as kubectl builds them."""

import shutil
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.processes import ROOT
from watcher_site import settings

FOLDER = ROOT / "docs" / "deployment" / "kubernetes"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
# The oldest release of Kubernetes that is tested, and the latest one whose schemas are known.
VERSIONS = ("1.30", kubernetes_validate.latest_version())
DEPLOYMENTS = {"web", "applier", "worker", "decision-engine", "relay"}
pytestmark = pytest.mark.skipif(not shutil.which("kubectl"), reason="needs a kubectl newer than that of Debian 12")


def build(folder: Path) -> list[dict[str, Any]]:
    built = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    return list(yaml.safe_load_all(built.stdout))


@cache
def resources() -> list[dict[str, Any]]:
    return build(FOLDER)


def find(kind: str) -> dict[str, dict[str, Any]]:
    return {item["metadata"]["name"]: item for item in resources() if item["kind"] == kind}


def pods() -> dict[str, dict[str, Any]]:
    """Return the specification of the pods of each Deployment and Job."""
    return {name: item["spec"]["template"]["spec"] for name, item in (find("Deployment") | find("Job")).items()}


def container(pod: dict[str, Any]) -> dict[str, Any]:
    (only,) = pod["containers"]
    return dict(only)


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_accepts_the_manifests(version: str) -> None:
    for resource in resources():
        kubernetes_validate.validate(resource, version, strict=True)


def test_every_process_of_a_site_with_workers_is_deployed() -> None:
    assert set(find("Deployment")) == DEPLOYMENTS
    assert set(find("Job")) == {"migrate"}


def test_pods_meet_the_restricted_pod_security_standard() -> None:
    for pod in pods().values():
        security = container(pod)["securityContext"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert security["readOnlyRootFilesystem"]
        assert not security["allowPrivilegeEscalation"]


def test_pods_have_resource_limits_and_the_current_image() -> None:
    for pod in pods().values():
        assert {"cpu", "memory"} == set(container(pod)["resources"]["requests"])
        assert "memory" in container(pod)["resources"]["limits"]
        assert container(pod)["image"].endswith(f"watcher-site:{VERSION}")


def test_termination_grace_period_of_a_pod_covers_the_grace_period_of_the_site() -> None:
    times = {name: pods()[name]["terminationGracePeriodSeconds"] for name in DEPLOYMENTS}
    assert {name for name, seconds in times.items() if seconds < settings.STOP_GRACE} == set()


def test_selectors_match_the_labels_of_the_pods() -> None:
    for item in find("Deployment").values():
        labels = item["spec"]["template"]["metadata"]["labels"]
        assert item["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_probes_of_web_processes_use_an_allowed_host() -> None:
    web = container(pods()["web"])
    probes = [web[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")]
    assert [probe["path"] for probe in probes] == ["/healthz", "/healthz", "/readyz"]
    assert {probe["httpHeaders"][0]["value"] for probe in probes} == {"watcher.example.org"}


def test_main_loops_have_a_liveness_probe_on_the_port_of_their_metrics() -> None:
    probes = {name: container(pods()[name]).get("livenessProbe", {}).get("httpGet") for name in DEPLOYMENTS - {"web"}}
    check = {"path": "/healthz", "port": "metrics"}
    assert probes == {"applier": check, "decision-engine": check, "relay": check, "worker": None}


def test_host_name_is_changed_in_one_place(tmp_path: Path) -> None:
    base = tmp_path / "base"
    shutil.copytree(FOLDER, base)
    file = base / "kustomization.yaml"
    hosts = "ALLOWED_HOSTS=site.example.net,site.example.com"
    file.write_text(file.read_text().replace("ALLOWED_HOSTS=watcher.example.org", hosts))
    text = yaml.dump_all(item for item in build(base) if item["kind"] in {"Deployment", "Ingress"})
    assert "watcher.example.org" not in text
    assert text.count("site.example.net") == 5
