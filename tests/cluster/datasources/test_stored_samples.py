"""Samples stored in the database of the site: loaded from files, aggregated by the database."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from cluster.datasources.base import Reading
from cluster.datasources.stored import StoredSamples
from cluster.models import Sample
from tests.builders import make_node
from watcher_site.models import HistoryEntry

pytestmark = pytest.mark.django_db
CPU = "instance_cpu_usage"
RESOURCE = "11111111-2222-4333-8444-555555555555"
LINE = {"metric": CPU, "resource": RESOURCE, "time": "2026-11-21T10:00:00Z", "value": 12.5}


def sample(value: float, seconds_ago: float, resource: str = RESOURCE, metric: str = CPU) -> None:
    time = timezone.now() - timedelta(seconds=seconds_ago)
    Sample.objects.create(metric=metric, resource=resource, time=time, value=value)


def load(path: Path, *lines: Any) -> None:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    call_command("load_metrics", str(path))


@pytest.mark.parametrize(("aggregate", "expected"), [("mean", 30), ("min", 10), ("max", 50), ("count", 2)])
def test_samples_of_a_period_are_aggregated(aggregate: str, expected: float) -> None:
    sample(10, 60)
    sample(50, 30)
    sample(1000, 600)
    assert StoredSamples().read(Reading(CPU, 300, aggregate)) == {RESOURCE: expected}


def test_period_can_end_before_the_current_time() -> None:
    sample(10, 450)
    sample(50, 30)
    assert StoredSamples().read(Reading(CPU, 300, ago=300)) == {RESOURCE: 10}


def test_all_resources_of_a_metric_are_read_with_one_query(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    for _ in range(5):
        sample(10, 60, resource=str(uuid4()))
    with django_assert_num_queries(1):
        assert len(StoredSamples().read(Reading(CPU, 300))) == 5


def test_metrics_with_samples_are_found() -> None:
    sample(10, 60)
    assert StoredSamples().find_metrics() == {CPU}


def test_json_lines_are_loaded(tmp_path: Path) -> None:
    load(tmp_path / "samples", LINE, {**LINE, "time": 1763720000})
    assert set(Sample.objects.values_list("metric", "resource", "value")) == {(CPU, UUID(RESOURCE), 12.5)}


def test_history_records_the_number_of_loaded_samples(tmp_path: Path) -> None:
    load(tmp_path / "samples", LINE, {**LINE, "time": 1763720000})
    entry = HistoryEntry.objects.get()
    assert (entry.deed, entry.object_name, entry.details) == ("metrics.load", "samples", {"samples": 2})


def test_csv_columns_are_read_in_the_order_of_the_header(tmp_path: Path) -> None:
    load(tmp_path / "samples", "value,metric,time,resource", f"7,{CPU},2026-11-21T10:00:00,{RESOURCE}")
    assert Sample.objects.get().value == 7


def test_compute_node_is_found_by_its_host_name(tmp_path: Path) -> None:
    node = make_node("compute1")
    load(tmp_path / "samples", {**LINE, "metric": "host_cpu_usage", "resource": "compute1"})
    assert Sample.objects.get().resource == node.uuid


def test_reloaded_sample_replaces_its_value(tmp_path: Path) -> None:
    load(tmp_path / "samples", LINE)
    load(tmp_path / "samples", {**LINE, "value": 3}, {**LINE, "value": 4})
    assert Sample.objects.get().value == 4


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{", "is not JSON."),
        ("[]", "must be an object with metric, resource, time, value."),
        ({**LINE, "more": 1}, "must be an object with"),
        ({**LINE, "metric": "luck"}, "metric: must be one of"),
        ({**LINE, "resource": "nobody"}, "resource: must be a UUID"),
        ({**LINE, "resource": 7}, "resource: must be a UUID"),
        ({**LINE, "time": "soon"}, "time: must be ISO 8601"),
        ({**LINE, "time": 1e300}, "time: must be ISO 8601"),
        ({**LINE, "value": "NaN"}, "value: must be a finite number."),
        ({**LINE, "value": None}, "value: must be a finite number."),
    ],
)
def test_invalid_line_is_reported_and_nothing_is_written(tmp_path: Path, line: Any, expected: str) -> None:
    path = tmp_path / "samples"
    with pytest.raises(CommandError) as problem:
        load(path, LINE, line)
    assert str(problem.value).startswith(f"{path}:2: {expected}")
    assert (problem.value.returncode, Sample.objects.exists()) == (2, False)


def test_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        call_command("load_metrics", str(tmp_path / "nothing"))
