"""Readings from Gnocchi: the requests, and values whose granularity is only partly in the period."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pytest_django import Settings
from requests import Response

from cluster.datasources.base import DatasourceError, Reading
from cluster.datasources.gnocchi import Gnocchi, node_of
from tests.builders import make_server

pytestmark = pytest.mark.django_db

# 2026-11-22T23:25:00Z.
NOW = 1795389900


class AnsweringGnocchi(Gnocchi):
    """A source that returns one response to every request and stores the arguments of the last request."""

    status = 200
    answer: Any = []
    arguments: Any = None

    def request(self, send: Any) -> tuple[int, bytes]:
        send()
        return self.status, json.dumps(self.answer).encode()

    def send(self, arguments: dict[str, Any]) -> Response:
        self.arguments = arguments
        return Response()


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Iterator[AnsweringGnocchi]:
    monkeypatch.setattr("cluster.datasources.gnocchi.time", SimpleNamespace(time=lambda: NOW))
    return AnsweringGnocchi()


def group(resource: str, name: str, *points: tuple[str, float]) -> dict[str, Any]:
    measures = [[f"2026-11-22T{time}:00+00:00", 300.0, value] for time, value in points]
    return {"group": {"original_resource_id": resource}, "measures": {"measures": {"1": {name: {"mean": measures}}}}}


def test_period_is_sent_as_start_and_stop(source: AnsweringGnocchi) -> None:
    source.read(Reading("host_power", 600, granularity=60, ago=300))
    parameters = source.arguments["params"]
    assert (parameters["start"], parameters["stop"], parameters["granularity"]) == (NOW - 900, NOW - 300, 60)


def test_ended_resources_are_excluded_from_the_search(source: AnsweringGnocchi) -> None:
    source.read(Reading("instance_ram_usage", 300))
    expected = {"and": [{"=": {"ended_at": None}}, {"in": {"type": ["instance"]}}]}
    assert source.arguments["json"]["search"] == expected


@pytest.mark.parametrize(
    ("metric", "series"),
    [("instance_cpu_usage", ["cpu", "rate:mean"]), ("host_ram_usage", ["hardware.memory.used", "mean"])],
)
def test_mean_is_the_only_aggregate_requested(source: AnsweringGnocchi, metric: str, series: list[str]) -> None:
    source.read(Reading(metric, 300, "max"))
    assert source.arguments["json"]["operations"] == ["metric", series]


def test_custom_metric_is_read_unchanged(source: AnsweringGnocchi, settings: Settings) -> None:
    settings.GNOCCHI_METRICS = {"instance_cpu_usage": "usage.of.servers"}
    source.answer = [group("a server", "usage.of.servers", ("23:20", 50))]
    assert source.read(Reading("instance_cpu_usage", 300)) == {"a server": 50}


def test_value_is_weighted_in_a_mean_by_its_share_of_the_period(source: AnsweringGnocchi) -> None:
    # The period begins at 23:18, after three of the first five minutes.
    source.answer = [group("a server", "memory.resident", ("23:15", 100), ("23:20", 170))]
    assert source.read(Reading("instance_ram_usage", 420)) == {"a server": pytest.approx(150)}


def test_values_before_the_period_are_ignored(source: AnsweringGnocchi) -> None:
    source.answer = [group("a server", "memory.resident", ("23:10", 100), ("23:15", 100))]
    assert source.read(Reading("instance_ram_usage", 300)) == {}


@pytest.mark.parametrize(
    ("resource", "node"),
    [
        ("compute1_compute1", "compute1"),
        ("compute1.example.org_compute1.example.org", "compute1.example.org"),
        ("compute1_compute1.example.org", "compute1"),
        ("compute1", "compute1"),
        ("rack_1", "rack_1"),
    ],
)
def test_node_name_is_the_host_of_the_resource(resource: str, node: str) -> None:
    assert node_of(resource) == node


def test_counter_samples_are_spaced_by_the_polling_interval(source: AnsweringGnocchi, settings: Settings) -> None:
    server = str(make_server(vcpus=1).uuid)
    settings.GNOCCHI_POLLING_INTERVAL = 60
    source.answer = [group(server, "cpu", ("23:20", 30e9))]
    assert source.read(Reading("instance_cpu_usage", 300)) == {server: pytest.approx(50)}


def test_granularity_missing_from_the_archive_policy_is_reported(source: AnsweringGnocchi) -> None:
    cause = {"cause": "Metrics cannot be aggregated", "reason": "Granularities are missing"}
    source.status, source.answer = 400, {"description": {**cause, "detail": [["memory.resident", "mean", 60.0]]}}
    expected = (
        "The data source gnocchi refused the query with status 400: Metrics cannot be aggregated: Granularities are"
        ' missing: [["memory.resident","mean",60.0]]'
    )
    with pytest.raises(DatasourceError) as problem:
        source.read(Reading("instance_ram_usage", 300, granularity=60))
    assert str(problem.value) == expected


def test_aggregate_missing_from_the_archive_policy_is_reported(source: AnsweringGnocchi) -> None:
    description = {"cause": "Metrics with unknown aggregation", "detail": [["6ddc2af3", "rate:mean"]]}
    source.status, source.answer = 404, {"description": description}
    with pytest.raises(DatasourceError, match=r"status 404: Metrics with unknown aggregation: \[\[\"6ddc2af3\""):
        source.read(Reading("instance_cpu_usage", 300))
