"""Readings from a real Prometheus server with the series of node_exporter and Ceilometer."""

from collections.abc import Iterator
from uuid import UUID

import pytest
from pytest_django import Settings

from actions.models import Action
from audits.engine.engine import DecisionEngine
from audits.models import Audit, Strategy
from cluster.datasources.base import DatasourceError, Reading
from cluster.datasources.prometheus import Prometheus
from cluster.models import ComputeNode
from plans.models import EfficacyIndicator
from tests.api import Caller
from tests.builders import make_audit, make_node, make_server
from tests.cluster.datasources.prometheus_server import REACH, Series, alternating, constant, counter, prometheus

pytestmark = [pytest.mark.django_db, pytest.mark.programs("prometheus", "promtool"), pytest.mark.slow]
BUSY, CALM, STALE, STRANGE = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "1234")
GIB = 1024**3
# Nanoseconds of processor time in a second.
SECOND = 1e9


def burst(seconds: float) -> float:
    """Return a counter that is constant until ten minutes ago and then grows by 0.9 s a second for five minutes."""
    return SECOND * 0.9 * min(max(seconds + 600, 0), 300)


SERIES = [
    # Two processors each: those of compute1 are idle for a quarter and a half of the time, those of compute2 always.
    *(
        Series("node_cpu_seconds_total", {"fqdn": fqdn, "instance": fqdn, "cpu": cpu, "mode": mode}, counter(rate))
        for fqdn, idle in (("compute1.example.org", (0.25, 0.5)), ("compute2", (1, 1)))
        for cpu, share in zip("01", idle, strict=True)
        for mode, rate in (("idle", share), ("user", 1 - share))
    ),
    Series("node_memory_MemTotal_bytes", {"fqdn": "compute1.example.org"}, constant(32 * GIB)),
    Series("node_memory_MemAvailable_bytes", {"fqdn": "compute1.example.org"}, alternating(20 * GIB, 24 * GIB)),
    Series("ceilometer_cpu", {"resource": BUSY}, counter(3.6 * SECOND)),
    Series("ceilometer_cpu", {"resource": CALM}, burst),
    Series("ceilometer_cpu", {"resource": STALE}, counter(SECOND), end=-900),
    Series("ceilometer_cpu", {"resource": STRANGE}, counter(SECOND)),
    Series("ceilometer_memory_usage", {"resource": BUSY}, alternating(512, 1024)),
    Series("ceilometer_memory_usage", {"resource": STALE}, constant(64), end=-900),
    Series("host_power", {"fqdn": "rack1.example.org"}, constant(100)),
    Series("host_power", {"fqdn": "rack1.example.com"}, constant(200)),
    Series("usage_of_servers", {"uuid": BUSY}, alternating(10, 50)),
]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with prometheus(tmp_path_factory.mktemp("prometheus"), SERIES) as port:
        yield port


@pytest.fixture
def source(port: int, settings: Settings) -> Prometheus:
    settings.DATASOURCE = "cluster.datasources.prometheus.Prometheus"
    settings.PROMETHEUS_URL = f"http://127.0.0.1:{port}"
    settings.DATASOURCE_ATTEMPTS = 1
    return Prometheus()


@pytest.fixture
def servers(db: None) -> None:
    node = make_node("compute1")
    for uuid in (BUSY, CALM, STALE):
        make_server(f"server-{uuid[0]}", node, uuid=UUID(uuid), vcpus=4)


def test_cpu_usage_of_a_node_is_the_time_not_idle(source: Prometheus) -> None:
    found = source.read(Reading("host_cpu_usage", 300))
    assert found["compute1.example.org"] == pytest.approx(62.5, abs=0.1)
    assert found["compute2"] == pytest.approx(0, abs=0.1)


def test_node_is_found_by_its_fully_qualified_and_its_short_name(source: Prometheus) -> None:
    found = source.read(Reading("host_cpu_usage", 300))
    assert found["compute1"] == found["compute1.example.org"]


def test_short_name_of_two_nodes_is_omitted(source: Prometheus) -> None:
    found = source.read(Reading("host_power", 300))
    assert found == {"rack1.example.org": 100, "rack1.example.com": 200}


@pytest.mark.parametrize(("aggregate", "expected"), [("mean", 10), ("max", 12), ("min", 8)])
def test_memory_usage_of_a_node_is_total_minus_available_in_kib(
    source: Prometheus, aggregate: str, expected: float
) -> None:
    found = source.read(Reading("host_ram_usage", 300, aggregate))
    assert found["compute1"] == pytest.approx(expected * 1024**2, rel=0.02)


@pytest.mark.usefixtures("servers")
def test_cpu_usage_of_a_server_is_the_share_of_all_its_vcpus(source: Prometheus) -> None:
    assert source.read(Reading("instance_cpu_usage", 300))[BUSY] == pytest.approx(90, abs=0.1)


def test_cpu_usage_of_a_server_is_at_most_100_percent(source: Prometheus) -> None:
    make_server(uuid=UUID(BUSY), vcpus=2)
    assert source.read(Reading("instance_cpu_usage", 300))[BUSY] == 100


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize(
    ("aggregate", "granularity", "expected"),
    [
        ("mean", 60, 9 * 300 / 400),
        # Of any minute; a granularity of the period or more means the whole period.
        ("max", 60, 22.5),
        ("min", 60, 0),
        ("max", 3600, 9 * 300 / 400),
    ],
)
def test_minimum_and_maximum_are_taken_over_one_granularity(
    source: Prometheus, aggregate: str, granularity: float, expected: float
) -> None:
    found = source.read(Reading("instance_cpu_usage", 1000, aggregate, granularity))
    assert found[CALM] == pytest.approx(expected, abs=0.6)


@pytest.mark.parametrize(("aggregate", "expected"), [("mean", 768), ("max", 1024), ("min", 512), ("count", 20)])
def test_samples_of_a_period_are_aggregated(source: Prometheus, aggregate: str, expected: float) -> None:
    found = source.read(Reading("instance_ram_usage", 300, aggregate))
    assert found[BUSY] == pytest.approx(expected, rel=0.051)


@pytest.mark.usefixtures("servers")
def test_count_of_a_counter_is_its_number_of_samples(source: Prometheus) -> None:
    assert source.read(Reading("instance_cpu_usage", 300, "count"))[BUSY] == pytest.approx(20, abs=1)


@pytest.mark.usefixtures("servers")
def test_period_can_end_before_the_current_time(source: Prometheus) -> None:
    then = source.read(Reading("instance_cpu_usage", 200, ago=350))
    now = source.read(Reading("instance_cpu_usage", 200))
    assert (then[CALM], now[CALM]) == (pytest.approx(22.5, abs=0.5), 0)


@pytest.mark.usefixtures("servers")
def test_stale_samples_are_ignored(source: Prometheus) -> None:
    assert STALE not in source.read(Reading("instance_cpu_usage", 600))
    assert STALE in source.read(Reading("instance_cpu_usage", REACH))
    assert STALE not in source.read(Reading("instance_ram_usage", 600))


@pytest.mark.usefixtures("servers")
def test_unknown_server_is_omitted(source: Prometheus) -> None:
    assert set(source.read(Reading("instance_cpu_usage", 300))) == {BUSY, CALM}


def test_metric_without_series_has_no_values(source: Prometheus) -> None:
    assert source.read(Reading("host_airflow", 300)) == {}


def test_custom_series_is_read_unchanged(source: Prometheus, settings: Settings) -> None:
    settings.PROMETHEUS_METRICS = {"instance_cpu_usage": "usage_of_servers"}
    settings.PROMETHEUS_SERVER_LABEL = "uuid"
    assert source.read(Reading("instance_cpu_usage", 300, "max")) == {BUSY: 50}


def test_metrics_with_current_series_are_found(source: Prometheus) -> None:
    expected = {"host_cpu_usage", "host_ram_usage", "host_power", "instance_cpu_usage", "instance_ram_usage"}
    assert source.find_metrics() == expected


def test_query_refused_by_prometheus_is_reported_with_the_reason(source: Prometheus, settings: Settings) -> None:
    settings.PROMETHEUS_METRICS = {"host_power": "not a name"}
    with pytest.raises(DatasourceError, match=r"refused the query with status 400: .*parse error"):
        source.read(Reading("host_power", 300))


def run_audit(strategy: str, **parameters: object) -> Audit:
    audit = make_audit(strategy=Strategy.objects.present().get(name=strategy), parameters=parameters)
    DecisionEngine().run(once=True)
    found: Audit = Audit.objects.get(pk=audit.pk)
    return found


@pytest.mark.usefixtures("servers", "source")
def test_audit_plans_migrations_from_prometheus_samples() -> None:
    make_node("compute2")
    make_server("server-4", ComputeNode.objects.get(hostname="compute1"), uuid=UUID(STRANGE), vcpus=1)
    audit = run_audit("workload_balance", threshold=20)
    assert (audit.state, audit.status_message) == ("SUCCEEDED", None)
    [action] = Action.objects.filter(action_plan__audit=audit)
    moved = {name: action.input_parameters[name] for name in ("resource_id", "source_node", "destination_node")}
    assert moved == {"resource_id": STRANGE, "source_node": "compute1", "destination_node": "compute2"}


@pytest.mark.usefixtures("servers", "source")
def test_audit_of_node_usage_reads_the_samples_of_nodes() -> None:
    make_node("compute2")
    audit = run_audit("workload_stabilization")
    found = EfficacyIndicator.objects.filter(action_plan__audit=audit)
    deviation = found.get(name="standard_deviation_before_audit")
    # 62.5 % on one node, none on the other.
    assert deviation.value == pytest.approx(0.3125, abs=0.001)


@pytest.mark.usefixtures("source")
def test_audit_without_samples_fails_with_the_reason() -> None:
    make_server("server-5", make_node())
    audit = run_audit("outlet_temperature")
    assert audit.state == "FAILED"
    assert audit.status_message.endswith(
        "The data source prometheus has no samples of host_outlet_temp from the last 30 seconds."
    )


@pytest.mark.usefixtures("source")
def test_strategy_state_shows_available_metrics(api: Caller) -> None:
    found = {entry["type"]: entry["state"] for entry in api.get("/strategies/workload_balance/state").json()}
    assert (found["Datasource"], found["Metrics"]) == ("prometheus: available", [{"instance_cpu_usage": "available"}])
