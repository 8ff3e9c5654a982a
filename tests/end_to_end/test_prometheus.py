"""A real Prometheus scrapes the site and evaluates its alert rules."""

import json
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from django.contrib.auth.models import User
from knox.models import AuthToken

from tests.builders import make_plan
from tests.end_to_end.processes.test_metrics_ports import web_process
from tests.processes import ROOT, start_command
from tests.waiting import PATIENCE, wait_for
from tests.watcher_site.monitoring.test_alerts import panels
from tests.watcher_site.site_process import free_port_number
from watcher_site.models import Service

pytestmark = [
    pytest.mark.slow,
    pytest.mark.postgresql,
    pytest.mark.programs("prometheus", "promtool"),
    pytest.mark.django_db(transaction=True),
]
CONFIGURATION = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: watcher-site
    authorization: {{credentials: {token}}}
    static_configs: [{{targets: ["127.0.0.1:{web}"]}}]
  - job_name: watcher-processes
    static_configs: [{{targets: ["127.0.0.1:{applier}", "127.0.0.1:{metrics}"]}}]
"""


# The panels of the dashboard that have data as soon as a site serves requests and executes a plan.
WITH_DATA = {
    *("Requests by status", "Latency", "Slowest views", "Action plans that have not ended", "Ended action plans"),
    *(
        "Actions that have not ended",
        "Ended actions by type",
        "Duration of actions (95 %)",
        "Duration of action plans",
    ),
    *("Queues", "Claims, retries, recoveries, lost leases", "Services", "Memory", "Processor time", "Versions"),
}


def has_data(port: int, panel: dict[str, Any]) -> bool:
    """Evaluate each expression of a panel, and return whether one of them has a value."""
    texts = [target["expr"].replace("$__rate_interval", "1m") for target in panel["targets"]]
    answers = [query(port, f"query?{urlencode({'query': text})}") for text in texts]
    assert [answer["resultType"] for answer in answers] == ["vector"] * len(answers)
    return any(answer["result"] for answer in answers)


def query(port: int, path: str) -> Any:
    try:
        return json.loads(urlopen(f"http://127.0.0.1:{port}/api/v1/{path}", timeout=PATIENCE).read())["data"]
    except OSError:
        return {}


def test_prometheus_scrapes_the_site_a_web_process_and_an_applier(cloud_admin: User, tmp_path: Path) -> None:
    _, token = AuthToken.objects.create(cloud_admin)
    port, applier_port, metrics_port = (free_port_number() for _ in range(3))
    make_plan({"a": []}, state="PENDING")
    applier = start_command("run_applier", WATCHER_METRICS_PORTS=f"applier={applier_port}")
    with web_process(WATCHER_METRICS_PORTS=f"web={metrics_port}") as (web_port, _):
        file = tmp_path / "prometheus.yml"
        rules = ROOT / "docs" / "monitoring" / "alerts.yml"
        ports = {"web": web_port, "metrics": metrics_port, "applier": applier_port}
        file.write_text(CONFIGURATION.format(rules=rules, token=token, **ports))
        options = [f"--storage.tsdb.path={tmp_path / 'data'}", f"--web.listen-address=127.0.0.1:{port}"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        prometheus = subprocess.Popen(["prometheus", f"--config.file={file}", *options], **quiet)
        try:
            wait_for(lambda: Service.objects.active().exists())
            wait_for(lambda: is_up(port))
            wait_for(lambda: are_evaluated(port))
            wait_for(lambda: {panel["title"] for panel in panels() if has_data(port, panel)} >= WITH_DATA)
            assert count_versions(port) == ["2"]
        finally:
            for process in (prometheus, applier):
                process.kill()
                process.wait()


def count_versions(port: int) -> list[str]:
    """Return the numbers of processes of each version on the panel of versions."""
    (panel,) = [panel for panel in panels() if panel["title"] == "Versions"]
    (target,) = panel["targets"]
    return [result["value"][1] for result in query(port, f"query?{urlencode({'query': target['expr']})}")["result"]]


def is_up(port: int) -> bool:
    targets = query(port, "targets").get("activeTargets", [])
    return len(targets) == 3 and all(target["health"] == "up" for target in targets)


def are_evaluated(port: int) -> bool:
    groups = query(port, "rules").get("groups", [])
    return bool(groups) and all(rule["health"] == "ok" for group in groups for rule in group["rules"])
