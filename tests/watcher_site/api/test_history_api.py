"""``/v1/history``: filters, export, permissions and the removal of old entries."""

import csv
import json
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.utils import timezone
from pytest_django import Settings

from tests.api import Caller, fault
from tests.builders import make_cluster, make_plan
from watcher_site.history import record
from watcher_site.history.reading import BATCH
from watcher_site.models import HistoryEntry
from watcher_site.request_context import CallingContext

pytestmark = pytest.mark.django_db
ROSA = CallingContext(user="rosa", request_id="req-1", project="blue")


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, "latest")


@pytest.fixture
def entries() -> list[HistoryEntry]:
    cluster = make_cluster("web")
    plan = make_plan()
    return [
        record("cluster.resize", cluster, caller=ROSA, details={"number": 2}),
        record("action.skip", plan.actions.first(), caller=ROSA, within=plan, message="Not before Sunday"),
        record("user.login", "bob", caller=CallingContext(user=""), outcome="refused"),
    ]


def found(api: Caller, query: str) -> list[str]:
    return [entry["deed"] for entry in api.get(f"/history?{query}").json()["history"]]


def test_entry_has_its_caller_object_and_details(api: Caller, entries: list[HistoryEntry]) -> None:
    shown = api.get(f"/history/{entries[0].uuid}").json()
    assert shown["user"] == "rosa"
    assert (shown["request_id"], shown["project_id"]) == ("req-1", "blue")
    assert (shown["object_type"], shown["object_name"], shown["details"]) == ("cluster", "web", {"number": 2})


@pytest.mark.parametrize(
    ("query", "events"),
    [
        ("user=rosa&object_type=cluster", ["cluster.resize"]),
        ("deed=action.skip", ["action.skip"]),
        ("outcome=refused", ["user.login"]),
        ("object_name=bob", ["user.login"]),
        ("text=SUNDAY", ["action.skip"]),
        ("since=2100-01-01", []),
        ("before=2100-01-01&request_id=req-1", ["action.skip", "cluster.resize"]),
        ("project_id=blue&sort_key=deed&sort_dir=asc", ["action.skip", "cluster.resize"]),
        ("limit=1&sort_dir=asc", ["cluster.resize"]),
    ],
)
def test_list_is_filtered_and_sorted(api: Caller, entries: list[HistoryEntry], query: str, events: list[str]) -> None:
    assert found(api, query) == events


def test_list_is_paged_from_newest_to_oldest(api: Caller, entries: list[HistoryEntry]) -> None:
    first = api.get("/history?limit=2").json()
    second = found(api, first["next"].partition("?")[2])
    assert ([entry["deed"] for entry in first["history"]], second) == (
        ["user.login", "action.skip"],
        ["cluster.resize"],
    )


def test_events_of_actions_are_found_by_their_plan(api: Caller, entries: list[HistoryEntry]) -> None:
    assert found(api, f"object_uuid={entries[1].within}") == ["action.skip"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("outcome=maybe", "outcome: must be one of"),
        ("since=yesterday", "since: must be a time"),
        ("before=0001-01-01T00:00:00%2B14:00", "before: must be a time"),
        ("since=2030-13-01", "since: must be a time"),
        ("object_uuid=web", "object_uuid: must be a UUID"),
        ("colour=red", "Unknown argument"),
    ],
)
def test_invalid_filter_is_refused(api: Caller, query: str, words: str) -> None:
    for path in ("/history", "/history/export"):
        response = api.get(f"{path}?{query}")
        assert response.status_code == 400
        assert words in fault(response)


def test_list_takes_one_query_for_any_number_of_entries(api: Caller, django_assert_num_queries: Any) -> None:
    HistoryEntry.objects.bulk_create(HistoryEntry(deed="a.b", object_type="a") for _ in range(100))
    api.get("/history?limit=1")
    with django_assert_num_queries(1):
        assert len(api.get("/history/detail").json()["history"]) == 100


def test_time_filters_match_entries_stored_out_of_order(api: Caller) -> None:
    noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
    for minutes in (-90, 20, -20, 90):
        HistoryEntry.objects.create(deed=f"a.{minutes}", created_at=noon + timedelta(minutes=minutes))
    assert found(api, "before=2030-01-01T12:00:00") == ["a.-20", "a.-90"]
    assert found(api, "since=2030-01-01T12:00:00") == ["a.90", "a.20"]


@pytest.mark.parametrize("query", ["since=0001-01-01T00:00:00", "before=9999-12-31T23:59:59"])
def test_extreme_times_select_all_entries(api: Caller, entries: list[HistoryEntry], query: str) -> None:
    assert len(found(api, query)) == len(entries)


def test_history_is_read_only_and_requires_its_version_and_permission(
    api: Caller, cloud_admin: User, reader: User, stranger: User, entries: list[HistoryEntry]
) -> None:
    assert Caller(cloud_admin, "1.12").get("/history").status_code == 406
    assert Caller(reader, "1.13").get("/history").status_code == 200
    for path in ("/history", "/history/export", f"/history/{entries[0].uuid}"):
        assert Caller(stranger, "1.13").get(path).status_code == 403
    assert api.delete(f"/history/{entries[0].uuid}").status_code == 405
    assert api.get(f"/history/{uuid4()}").status_code == 404


def test_json_lines_export_is_filtered(api: Caller, entries: list[HistoryEntry]) -> None:
    response = api.get("/history/export?format=jsonl&user=rosa")
    assert response["Content-Type"] == "application/x-ndjson"
    assert [json.loads(line)["deed"] for line in b"".join(response.streaming_content).splitlines()] == [
        "cluster.resize",
        "action.skip",
    ]


def test_csv_cells_are_escaped_against_formulas(api: Caller) -> None:
    for name in ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", 'plain "quoted", text'):
        record("a.b", name, caller=ROSA)
    response = api.get("/history/export")
    rows = list(csv.DictReader(StringIO(b"".join(response.streaming_content).decode(), newline="")))
    assert [row["object_name"] for row in rows] == [
        "'=1+1",
        "'+1",
        "'-1",
        "'@SUM(A1)",
        "'\t=1",
        'plain "quoted", text',
    ]


def test_export_reads_in_batches(api: Caller, django_assert_num_queries: Any) -> None:
    HistoryEntry.objects.bulk_create(HistoryEntry(deed="a.b", object_type="a") for _ in range(BATCH + 1))
    response = api.get("/history/export?format=jsonl")
    with django_assert_num_queries(3):
        assert sum(1 for _ in response.streaming_content) == BATCH + 1


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_number_of_any_size_is_exported(api: Caller, kind: str) -> None:
    record("cluster.resize", "web", caller=ROSA, details={"number": 2**64, "of": [-(2**64), 2]})
    exported = b"".join(api.get(f"/history/export?format={kind}").streaming_content)
    assert str(2**64).encode() in exported


def test_command_export_is_filtered(entries: list[HistoryEntry], capsys: pytest.CaptureFixture[str]) -> None:
    call_command("export_history", "--format", "jsonl", "--object-type", "cluster")
    assert [json.loads(line)["deed"] for line in capsys.readouterr().out.splitlines()] == ["cluster.resize"]


def test_purge_removes_old_history_and_records_itself(entries: list[HistoryEntry], settings: Settings) -> None:
    settings.HISTORY_AGE = timedelta(days=30)
    HistoryEntry.objects.filter(deed="user.login").update(created_at=timezone.now() - timedelta(days=31))
    call_command("purge", "--yes")
    assert list(HistoryEntry.objects.order_by("pk").values_list("deed", flat=True)) == [
        "cluster.resize",
        "action.skip",
        "database.purge",
    ]


def test_history_without_a_maximum_age_is_never_expired(settings: Settings) -> None:
    settings.HISTORY_AGE = timedelta()
    HistoryEntry.objects.create(deed="a.b", object_type="a", created_at=datetime(2000, 1, 1, tzinfo=UTC))
    assert not HistoryEntry.objects.expired().exists()
