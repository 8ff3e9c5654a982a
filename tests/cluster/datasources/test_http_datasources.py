"""The behaviour of all data sources that use HTTP: the same samples in the wire format of each."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
from keystoneauth1 import exceptions as keystone
from pytest_django import DjangoAssertNumQueries, Settings

from audits.engine.engine import DecisionEngine
from audits.models import Strategy
from cluster.datasources.aetos import Aetos
from cluster.datasources.base import METRICS, Datasource, DatasourceError, Reading, datasource
from cluster.datasources.gnocchi import Gnocchi
from cluster.datasources.prometheus import Prometheus
from tests.api import Caller
from tests.builders import make_audit, make_node, make_server
from tests.cluster.emulator.server import PASSWORD, Emulator

pytestmark = pytest.mark.django_db
# A multiple of the granularity, so that periods begin and end with it.
NOW = 1795389900
GRANULARITY = 300
BUSY, CALM, UNKNOWN = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "123")
NODE = "compute1.example.org"
TOKENS = "POST /identity/v3/auth/tokens"
RECORDED = Path(__file__).parent / "recorded"


@dataclass(frozen=True)
class Kind:
    """A data source, the requests that it sends for samples, and its error bodies."""

    source: type[Datasource]
    requests: str
    refusal: Callable[[str], Any]

    @property
    def name(self) -> str:
        return self.source.name


def error_of_prometheus(reason: str) -> Any:
    return {"status": "error", "errorType": "bad_data", "error": reason}


def error_of_aetos(reason: str) -> Any:
    return {"error_message": {"debuginfo": None, "faultcode": "Client", "faultstring": reason}}


def error_of_gnocchi(reason: str) -> Any:
    return {"code": 400, "title": "Bad Request", "description": reason}


PROMETHEUS = Kind(Prometheus, "POST /open-prometheus/api/v1/query", error_of_prometheus)
AETOS = Kind(Aetos, "GET /prometheus/api/v1/query", error_of_aetos)
GNOCCHI = Kind(Gnocchi, "POST /metric/v1/aggregates", error_of_gnocchi)
KINDS = [PROMETHEUS, AETOS, GNOCCHI]
every_source = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
behind_keystone = pytest.mark.parametrize("kind", [AETOS, GNOCCHI], ids=lambda kind: kind.name)


@pytest.fixture
def emulator(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    cloud = Emulator().start()
    cloud.telemetry.now = NOW
    (tmp_path / "clouds.yaml").write_text(cloud.clouds_yaml())
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    monkeypatch.setattr("cluster.datasources.gnocchi.time", SimpleNamespace(time=lambda: NOW))
    settings.OPENSTACK_CLOUD = "emulated"
    settings.PROMETHEUS_URL = f"{cloud.url}/open-prometheus"
    settings.DATASOURCE_ATTEMPTS, settings.DATASOURCE_WAIT, settings.DATASOURCE_TIMEOUT = 3, 0, 5
    yield cloud
    cloud.stop()


@pytest.fixture
def source(kind: Kind, emulator: Emulator, settings: Settings) -> Datasource:
    settings.DATASOURCE = f"{kind.source.__module__}.{kind.source.__name__}"
    return datasource()


def reading(metric: str, aggregate: str = "mean", **columns: Any) -> Reading:
    return Reading(metric, 3 * GRANULARITY, aggregate, GRANULARITY, **columns)


def refusal(source: Datasource, metric: str = "host_power") -> str:
    """Return the error message of a reading that fails, without its first words."""
    with pytest.raises(DatasourceError) as problem:
        source.read(reading(metric))
    begin = f"The data source {source.name} "
    assert str(problem.value).startswith(begin)
    return str(problem.value).removeprefix(begin)


# Samples.


@every_source
@pytest.mark.parametrize("metric", METRICS)
def test_metric_is_read_in_its_unit(source: Datasource, emulator: Emulator, metric: str) -> None:
    make_server(uuid=UUID(BUSY), vcpus=4)
    emulator.telemetry.vcpus = 4
    resource = NODE if metric.startswith("host_") else BUSY
    emulator.telemetry.samples = {metric: {resource: [25.0, 25.0, 25.0]}}
    assert source.read(reading(metric))[resource] == pytest.approx(25)


@every_source
@pytest.mark.parametrize("metric", ["instance_cpu_usage", "instance_ram_usage", "host_power"])
@pytest.mark.parametrize(("aggregate", "expected"), [("mean", 30), ("min", 10), ("max", 60), ("count", 3)])
def test_samples_of_a_period_are_aggregated(
    source: Datasource, emulator: Emulator, metric: str, aggregate: str, expected: float
) -> None:
    make_server(uuid=UUID(BUSY), vcpus=2)
    emulator.telemetry.vcpus = 2
    resource = "compute1" if metric.startswith("host_") else BUSY
    emulator.telemetry.samples = {metric: {resource: [10, 60, 20]}}
    assert source.read(reading(metric, aggregate)) == {resource: pytest.approx(expected)}


@every_source
def test_unknown_server_is_omitted(source: Datasource, emulator: Emulator) -> None:
    make_server(uuid=UUID(BUSY), vcpus=1)
    emulator.telemetry.samples = {"instance_cpu_usage": {BUSY: [50, 50, 50], UNKNOWN: [50, 50, 50]}}
    assert set(source.read(reading("instance_cpu_usage"))) == {BUSY}


@every_source
def test_cpu_usage_of_a_server_is_at_most_100_percent(source: Datasource, emulator: Emulator) -> None:
    make_server(uuid=UUID(BUSY), vcpus=1)
    emulator.telemetry.samples = {"instance_cpu_usage": {BUSY: [101, 101, 101]}}
    assert source.read(reading("instance_cpu_usage")) == {BUSY: 100}


@every_source
def test_node_is_found_by_its_fully_qualified_and_its_short_name(source: Datasource, emulator: Emulator) -> None:
    emulator.telemetry.samples = {"host_cpu_usage": {NODE: [40, 40, 40], "compute2": [5, 5, 5]}}
    found = {name: pytest.approx(value) for name, value in {NODE: 40, "compute1": 40, "compute2": 5}.items()}
    assert source.read(reading("host_cpu_usage")) == found


@every_source
def test_short_name_of_two_nodes_is_omitted(source: Datasource, emulator: Emulator) -> None:
    emulator.telemetry.samples = {"host_power": {"rack1.example.org": [1, 1, 1], "rack1.example.com": [2, 2, 2]}}
    assert source.read(reading("host_power")) == {"rack1.example.org": 1, "rack1.example.com": 2}


@every_source
def test_metric_without_series_has_no_values(source: Datasource) -> None:
    assert source.read(reading("host_airflow")) == {}


@every_source
def test_metrics_with_current_series_are_found(source: Datasource, emulator: Emulator) -> None:
    emulator.telemetry.samples = {
        "host_cpu_usage": {"compute1": [1, 1, 1]},
        "instance_cpu_usage": {BUSY: [1, 1, 1]},
        "instance_ram_usage": {BUSY: [1, 1, 1]},
    }
    assert source.find_metrics() == set(emulator.telemetry.samples)


@every_source
def test_no_metrics_are_found_without_samples(source: Datasource) -> None:
    assert source.find_metrics() == set()


@every_source
@pytest.mark.parametrize("number", [1, 50])
def test_request_and_query_count_does_not_depend_on_the_number_of_servers(
    kind: Kind,
    source: Datasource,
    emulator: Emulator,
    number: int,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    node = make_node()
    servers = [str(make_server(f"server-{place}", node, uuid=uuid4(), vcpus=1).uuid) for place in range(number)]
    emulator.telemetry.samples = {"instance_cpu_usage": {server: [50, 50, 50] for server in servers}}
    with django_assert_num_queries(1):
        assert set(source.read(reading("instance_cpu_usage"))) == set(servers)
    assert emulator.count(kind.requests) == 1


@every_source
def test_finding_metrics_sends_at_most_two_requests(kind: Kind, source: Datasource, emulator: Emulator) -> None:
    emulator.telemetry.samples = {"instance_ram_usage": {str(uuid4()): [1, 1, 1] for _ in range(50)}}
    source.find_metrics()
    assert emulator.count(kind.requests) <= 2


def test_recorded_prometheus_response_is_parsed(emulator: Emulator, settings: Settings) -> None:
    emulator.telemetry.recorded = json.loads((RECORDED / "prometheus.json").read_text())
    settings.PROMETHEUS_METRICS, settings.PROMETHEUS_NODE_LABEL = {"host_power": "up"}, "instance"
    expected = {"localhost:9090": 1, "localhost:9100": 0}
    assert Prometheus().read(reading("host_power")) == Aetos().read(reading("host_power")) == expected


def test_recorded_gnocchi_4_7_response_is_parsed(emulator: Emulator) -> None:
    for uuid in (BUSY, CALM):
        make_server(f"server-{uuid[0]}", make_node(f"node-{uuid[0]}"), uuid=UUID(uuid), vcpus=4)
    emulator.telemetry.recorded = json.loads((RECORDED / "gnocchi.json").read_text())
    # 540 s of processor time in 300 s is 1.8 of 4 vcpus. The counter of the other server fell, as after a migration.
    assert Gnocchi().read(reading("instance_cpu_usage")) == {BUSY: pytest.approx(45)}


@every_source
def test_audit_plans_actions_from_samples(source: Datasource, emulator: Emulator) -> None:
    busy, _ = make_node("compute1"), make_node("compute2")
    for uuid in (BUSY, CALM):
        make_server(f"server-{uuid[0]}", busy, uuid=UUID(uuid), vcpus=4)
    emulator.telemetry.vcpus = 4
    emulator.telemetry.samples = {"instance_cpu_usage": {BUSY: [90, 90, 90], CALM: [40, 40, 40]}}
    strategy = Strategy.objects.present().get(name="workload_balance")
    audit = make_audit(strategy=strategy, parameters={"threshold": 20, "period": 900})
    DecisionEngine().run(once=True)
    audit.refresh_from_db()
    assert (audit.state, audit.status_message) == ("SUCCEEDED", None)
    assert audit.action_plans.get().actions.count() == 1


@every_source
def test_strategy_state_shows_available_metrics(source: Datasource, emulator: Emulator, api: Caller) -> None:
    emulator.telemetry.samples = {"instance_cpu_usage": {BUSY: [1, 1, 1]}}
    found = {entry["type"]: entry["state"] for entry in api.get("/strategies/workload_balance/state").json()}
    expected = (f"{source.name}: available", [{"instance_cpu_usage": "available"}])
    assert (found["Datasource"], found["Metrics"]) == expected


# Failures.


@every_source
@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_query_is_retried_after_a_server_error(
    kind: Kind, source: Datasource, emulator: Emulator, status: int
) -> None:
    emulator.telemetry.samples = {"host_power": {"compute1": [100, 100, 100]}}
    emulator.fail(kind.requests, status, times=2)
    assert source.read(reading("host_power")) == {"compute1": 100}


@every_source
def test_permanent_server_error_is_reported(kind: Kind, source: Datasource, emulator: Emulator) -> None:
    emulator.fail(kind.requests, 503, times=99)
    assert refusal(source) == "is not available: status 503"
    assert emulator.count(kind.requests) == 3


@every_source
@pytest.mark.parametrize("status", [400, 403, 422])
def test_refused_query_is_not_retried(kind: Kind, source: Datasource, emulator: Emulator, status: int) -> None:
    emulator.fail(kind.requests, status, times=99, body=b"<html>")
    assert refusal(source) == f"refused the query with status {status}."
    assert emulator.count(kind.requests) == 1


@every_source
def test_query_with_status_404_is_not_retried(kind: Kind, source: Datasource, emulator: Emulator) -> None:
    emulator.fail(kind.requests, 404, times=99, body=b"<html>")
    assert refusal(source) == f"refused the query with status 404, and not as {kind.name.capitalize()} does."
    assert emulator.count(kind.requests) == 1


@every_source
def test_reason_of_a_refusal_is_reported(kind: Kind, source: Datasource, emulator: Emulator) -> None:
    emulator.fail(kind.requests, 400, times=99, body=json.dumps(kind.refusal("too many samples")))
    assert refusal(source) == "refused the query with status 400: too many samples"


@every_source
def test_addresses_are_removed_from_the_reason_of_a_refusal(
    kind: Kind, source: Datasource, emulator: Emulator
) -> None:
    emulator.fail(kind.requests, 400, times=99, body=json.dumps(kind.refusal("no way to http://10.0.0.1:9090/x")))
    assert refusal(source) == "refused the query with status 400: no way to (an address)"


@every_source
@pytest.mark.parametrize(
    "body",
    [
        "<html>Welcome</html>",
        "7",
        "{}",
        '{"status": "success", "data": {"result": [{"metric": {}}]}}',
        '[{"group": {}, "measures": {"measures": {}}}]',
        '[{"group": {"original_resource_id": "a"}, "measures": {"measures": {"b": {"c": {"mean": [["x", 1, 2]]}}}}}]',
        '[{"group": {"original_resource_id": "a"}, "measures": {"measures": {"b": {"c": {"mean": [[1]]}}}}}]',
    ],
)
def test_unexpected_response_body_is_reported(kind: Kind, source: Datasource, emulator: Emulator, body: str) -> None:
    emulator.fail(kind.requests, 200, times=99, body=body)
    expected = f"answered with status 200, and not as {source.name.capitalize()} does."
    assert refusal(source) == expected


@every_source
def test_redirect_is_not_followed(kind: Kind, source: Datasource, emulator: Emulator) -> None:
    emulator.fail(kind.requests, 302, times=99, body=b"")
    assert refusal(source) == "refused the query with status 302."
    assert emulator.count(kind.requests) == 1


@every_source
def test_query_is_retried_after_a_broken_connection(kind: Kind, source: Datasource, emulator: Emulator) -> None:
    emulator.telemetry.samples = {"host_power": {"compute1": [100, 100, 100]}}
    emulator.fail(kind.requests, times=2)
    assert source.read(reading("host_power")) == {"compute1": 100}


@every_source
def test_hanging_source_times_out(kind: Kind, source: Datasource, emulator: Emulator, settings: Settings) -> None:
    source.read(reading("host_power"))
    settings.DATASOURCE_ATTEMPTS, settings.DATASOURCE_TIMEOUT = 2, 0.2
    emulator.fail(kind.requests, 200, times=2, seconds=1)
    assert refusal(datasource()).startswith("is not available: ")
    assert emulator.count(kind.requests) == 3


@every_source
def test_unreachable_source_is_reported_without_its_address(
    kind: Kind, source: Datasource, emulator: Emulator
) -> None:
    source.read(reading("host_power"))
    emulator.stop()
    message = refusal(source)
    emulator.start()
    assert message.startswith("is not available: ")
    assert "127.0.0.1" not in message


@every_source
def test_response_over_the_size_limit_is_refused(
    kind: Kind, source: Datasource, emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cluster.datasources.http.MAX_BYTES", 1000)
    emulator.fail(kind.requests, 200, body=b" " * 100_000)
    with pytest.raises(DatasourceError, match=f"^The answer of the data source {source.name} is larger than 1000"):
        source.read(reading("host_power"))


# Keystone.


@behind_keystone
def test_one_token_is_used_for_many_readings(source: Datasource, emulator: Emulator) -> None:
    for _ in range(3):
        source.read(reading("host_power"))
    assert emulator.count(TOKENS) == 1


@behind_keystone
def test_expired_token_is_renewed(kind: Kind, source: Datasource, emulator: Emulator) -> None:
    emulator.telemetry.samples = {"host_power": {"compute1": [100, 100, 100]}}
    source.read(reading("host_power"))
    emulator.tokens.clear()
    assert source.read(reading("host_power")) == {"compute1": 100}
    assert (emulator.count(TOKENS), emulator.count(kind.requests)) == (2, 3)


@behind_keystone
def test_refused_renewed_token_is_reported(kind: Kind, source: Datasource, emulator: Emulator) -> None:
    emulator.fail(kind.requests, 401, times=99)
    assert refusal(source) == "refused the query with status 401."


@behind_keystone
def test_wrong_password_is_reported_and_not_retried(source: Datasource, emulator: Emulator) -> None:
    emulator.password = "another password"
    message = refusal(source)
    assert message.startswith("cannot be queried: The cloud rejects the credentials of the site: ")
    assert PASSWORD not in message
    assert emulator.count(TOKENS) == 1


@behind_keystone
def test_token_request_is_retried_after_a_server_error(source: Datasource, emulator: Emulator) -> None:
    emulator.telemetry.samples = {"host_power": {"compute1": [100, 100, 100]}}
    emulator.fail("auth/tokens", 503, times=2)
    assert source.read(reading("host_power")) == {"compute1": 100}


@behind_keystone
def test_service_missing_from_the_catalog_is_reported(source: Datasource, emulator: Emulator) -> None:
    emulator.offered = {"identity"}
    service_type = source.service_type  # type: ignore[attr-defined]
    assert refusal(source) == f"is not in the cloud: its catalog has no endpoint of type {service_type}"


@behind_keystone
def test_service_added_to_the_catalog_later_is_found(source: Datasource, emulator: Emulator) -> None:
    emulator.telemetry.samples = {"host_power": {"compute1": [100, 100, 100]}}
    offered, emulator.offered = emulator.offered, {"identity"}
    assert refusal(source).startswith("is not in the cloud")
    emulator.offered = offered
    assert source.read(reading("host_power")) == {"compute1": 100}


@behind_keystone
def test_request_with_an_untrusted_certificate_is_not_retried(
    kind: Kind, source: Datasource, emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = []

    def fail(*_: Any, **__: Any) -> None:
        attempts.append(1)
        raise keystone.SSLError("SSL exception connecting to https://10.0.0.1/x: certificate verify failed")

    monkeypatch.setattr("keystoneauth1.adapter.Adapter.request", fail)
    assert refusal(source).startswith("is not trusted: SSL exception connecting to (an address)")
    assert len(attempts) == 1


def test_plain_text_refusal_of_aetos_is_reported(emulator: Emulator) -> None:
    emulator.fail(AETOS.requests, 403, body=json.dumps({"error_message": "RBAC Authorization Failed"}))
    assert refusal(Aetos()) == "refused the query with status 403: RBAC Authorization Failed"


@behind_keystone
def test_unconfigured_cloud_is_reported(source: Datasource, settings: Settings) -> None:
    settings.OPENSTACK_CLOUD = "nowhere"
    message = refusal(datasource())
    reason = "OS_CLOUD and clouds.yaml do not define a usable cloud: Cloud nowhere was not found."
    assert message == f"cannot be queried: {reason}"
