"""The alert rules and the dashboard are valid, use exported metrics only, and each alert has a runbook."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from watcher_site.monitoring.exposition import all_metrics

DOCS = Path(__file__).parents[3] / "docs"
ALERTS, DASHBOARD = DOCS / "monitoring" / "alerts.yml", DOCS / "monitoring" / "dashboard.json"
PAGE = (DOCS / "monitoring.md").read_text()
CASES = Path(__file__).parent / "alert_tests.yml"
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]
]
# Of prometheus_client and of Prometheus itself.
FOREIGN = {"up", "process_resident_memory_bytes", "process_cpu_seconds_total", "process_start_time_seconds"}
promtool = pytest.mark.programs("promtool")


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return [panel for panel in found if panel["type"] != "row"]


def expressions() -> list[str]:
    return [rule["expr"] for rule in RULES] + [target["expr"] for panel in panels() for target in panel["targets"]]


def exported() -> dict[str, set[str]]:
    """Return the names of all samples that the site exports, with their labels."""
    samples = {}
    for metric in all_metrics():
        endings = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"], "gauge": [""]}[metric.kind]
        for ending in endings:
            samples[metric.name + ending] = {*metric.labels, *(["le"] if ending == "_bucket" else [])}
    return samples


def check(*arguments: str) -> None:
    ended = subprocess.run(["promtool", *arguments], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@promtool
def test_alert_rules_are_valid() -> None:
    check("check", "rules", str(ALERTS))


@promtool
def test_each_alert_fires_only_at_its_symptom(tmp_path: Path) -> None:
    """The second case has the symptoms of all alerts, so that a new alert requires its symptom there."""
    text = CASES.read_text().replace("  - ALERTS\n", f"  - {ALERTS}\n").replace("NUMBER", str(len(RULES)))
    (tmp_path / "cases.yml").write_text(text)
    check("test", "rules", str(tmp_path / "cases.yml"))


def test_panels_use_the_data_source_variable_of_the_dashboard() -> None:
    """A file that names the data source of another Grafana would be imported without data."""
    (variable,) = json.loads(DASHBOARD.read_text())["templating"]["list"]
    assert (variable["name"], variable["type"], variable["query"]) == ("datasource", "datasource", "prometheus")
    sources = [part["datasource"] for panel in panels() for part in (panel, *panel["targets"])]
    assert [source for source in sources if source != {"type": "prometheus", "uid": "${datasource}"}] == []


def test_panels_have_unique_ids_separate_places_and_a_legend() -> None:
    found = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in found}) == len(found)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in found)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    assert all(panel["options"]["legend"]["showLegend"] for panel in panels())
    assert all(len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) for panel in panels())


def test_alerts_and_dashboard_use_only_exported_metrics() -> None:
    used = {name for text in expressions() for name in re.findall(r"\b(?:watcher|process)_\w+|\bup\b", text)}
    assert used - set(exported()) - FOREIGN == set()


@pytest.mark.parametrize("expression", sorted(set(expressions())))
def test_expressions_use_only_labels_of_their_metrics(expression: str) -> None:
    names = re.findall(r"\bwatcher_\w+", expression)
    known = {"job", "instance"}.union(*(exported()[name] for name in names))
    listed = re.findall(r"by \(([^)]*)\)", expression)
    grouped = {label.strip() for labels in listed for label in labels.split(",")}
    matched = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", expression))
    assert (grouped | matched) - known == set()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_alert_has_a_runbook_a_severity_and_a_summary(rule: dict[str, Any]) -> None:
    assert f"\n### {rule['alert']}\n" in PAGE
    assert rule["annotations"]["runbook_url"].endswith(f"/docs/monitoring/#{rule['alert'].lower()}")
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert rule["annotations"]["summary"]


def test_each_runbook_belongs_to_an_alert() -> None:
    headings = set(re.findall(r"^### (Watcher\w+)$", PAGE, re.MULTILINE))
    assert headings == {rule["alert"] for rule in RULES}


def test_panels_do_not_start_at_the_same_place() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels()]
    assert len(places) == len(set(places))


def test_each_metric_is_used_by_an_alert_or_a_panel() -> None:
    text = "\n".join(expressions())
    unused = [metric.name for metric in all_metrics() if metric.name not in text]
    assert unused == ["watcher_cloud_last_reading_failed", "watcher_listener_messages"]
