"""Measurements for strategies, and audits that fail without them."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from audits.engine.engine import DecisionEngine
from audits.models import Audit, Strategy
from audits.operations.strategies import complete_parameters
from cluster.models import Sample, Server
from plans.models import ActionPlan
from tests.api import Caller
from tests.builders import make_audit, make_node, make_server
from watcher_site.plugins import load

pytestmark = pytest.mark.django_db
PROMETHEUS = "cluster.datasources.prometheus.Prometheus"


def balance() -> Audit:
    strategy = Strategy.objects.present().get(name="workload_balance")
    audit = make_audit(strategy=strategy)
    DecisionEngine().run(once=True)
    found: Audit = Audit.objects.get(pk=audit.pk)
    return found


def measured(server: Server, value: float, seconds_ago: float = 60) -> None:
    time = timezone.now() - timedelta(seconds=seconds_ago)
    Sample.objects.create(metric="instance_cpu_usage", resource=server.uuid, time=time, value=value)


def make_busy_servers() -> list[Server]:
    node = make_node("compute1")
    make_node("compute2")
    return [make_server(name, node=node, vcpus=4) for name in ("a", "b", "c")]


def test_audit_proposes_a_migration_from_stored_samples() -> None:
    for server in make_busy_servers():
        measured(server, 90)
    assert balance().state == "SUCCEEDED"
    [action] = ActionPlan.objects.get().actions.all()
    assert action.input_parameters["destination_node"] == "compute2"


def test_audit_with_stale_samples_fails_with_the_reason() -> None:
    for server in make_busy_servers():
        measured(server, 90, seconds_ago=3600)
    audit = balance()
    assert audit.state == "FAILED"
    assert audit.status_message.endswith(
        "The data source stored has no samples of instance_cpu_usage from the last 300 seconds."
    )


def test_samples_of_deleted_servers_are_ignored() -> None:
    gone = make_server("gone")
    measured(gone, 90)
    gone.delete()
    make_busy_servers()
    assert balance().state == "FAILED"


def test_audit_of_a_cloud_without_servers_requires_no_samples() -> None:
    make_node("compute1")
    assert balance().state == "SUCCEEDED"


@pytest.mark.parametrize("strategy", ["basic", "workload_stabilization"])
def test_deprecated_node_key_of_aggregation_method_overrides_compute_node(strategy: str) -> None:
    plugin = load("STRATEGIES")[strategy]()
    parameters = complete_parameters(plugin.schema, {"aggregation_method": {"compute_node": "min", "node": "max"}})
    assert plugin.readings(parameters)["host_cpu_usage"].aggregate == "max"


def test_deprecated_node_key_of_periods_overrides_compute_node() -> None:
    plugin = load("STRATEGIES")["workload_stabilization"]()
    parameters = complete_parameters(plugin.schema, {"periods": {"node": 60}})
    assert plugin.readings(parameters)["host_cpu_usage"].period == 60


def test_unavailable_data_source_fails_the_audit_and_other_audits_run(settings: Settings) -> None:
    settings.DATASOURCE, settings.PROMETHEUS_URL = PROMETHEUS, "http://user:secret@127.0.0.1:9"
    settings.DATASOURCE_ATTEMPTS, settings.DATASOURCE_WAIT = 2, 0
    make_busy_servers()
    audit = balance()
    assert audit.state == "FAILED"
    assert "The data source prometheus is not available: ConnectionError" in audit.status_message
    make_audit(name="another", strategy=Strategy.objects.present().get(name="dummy"))
    DecisionEngine().run(once=True)
    assert Audit.objects.get(name="another").state == "SUCCEEDED"


def entries(api: Caller, strategy: str) -> dict[str, object]:
    return {entry["type"]: entry["state"] for entry in api.get(f"/strategies/{strategy}/state").json()}


def test_strategy_state_shows_available_metrics(api: Caller) -> None:
    assert entries(api, "workload_balance")["Metrics"] == [{"instance_cpu_usage": "not available"}]
    measured(make_server(), 1)
    found = entries(api, "workload_balance")
    assert (found["Datasource"], found["Metrics"]) == ("stored: available", [{"instance_cpu_usage": "available"}])


def test_strategy_state_shows_an_unavailable_data_source(api: Caller, settings: Settings) -> None:
    settings.DATASOURCE, settings.PROMETHEUS_URL = PROMETHEUS, "http://127.0.0.1:9"
    settings.DATASOURCE_ATTEMPTS = 1
    assert entries(api, "basic")["Datasource"] == "prometheus: not available"


def test_strategy_state_without_metrics_shows_no_data_source(api: Caller) -> None:
    found = entries(api, "dummy")
    assert (found["Datasource"], found["Metrics"]) == ("Datasource is not presented for this strategy", [])
