"""``/metrics``: authentication, permissions and the gauges of the tables."""

import re
from base64 import b64encode
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from django.utils import timezone
from knox.models import AuthToken
from prometheus_client import Counter, Histogram
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import DjangoAssertNumQueries, Settings

from actions.models import Action
from audits.models import Audit
from cluster.models import Synchronization
from plans.models import ActionPlan
from tests.builders import action, make_audit, make_plan
from watcher_site.api.authentication import BearerAuthentication
from watcher_site.models import Delivery, Notification, Service, Subscription
from watcher_site.monitoring import metrics
from watcher_site.monitoring.exposition import all_metrics, initialize_counters

State = ActionPlan.State


def read_metrics(client: Client, user: User) -> dict[tuple[str, ...], float]:
    """Return the samples by name and by the values of their labels, in the order of the names of the labels."""
    client.force_login(user)
    answer = client.get("/metrics")
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.content.decode())
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in families
        for sample in family.samples
    }


def long_ago() -> Any:
    return timezone.now() - timedelta(minutes=10)


# Access.


@pytest.mark.django_db
def test_metrics_require_a_login(client: Client) -> None:
    assert client.get("/metrics").status_code == 401


def test_metrics_require_the_permission(client: Client, stranger: User) -> None:
    client.force_login(stranger)
    assert client.get("/metrics").status_code == 403


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "Token"])
def test_metrics_are_readable_with_a_token(client: Client, reader: User, scheme: str) -> None:
    _, token = AuthToken.objects.create(reader)
    assert client.get("/metrics", headers={"Authorization": f"{scheme} {token}"}).status_code == 200


def test_metrics_are_readable_with_a_password(client: Client, reader: User) -> None:
    reader.set_password("long enough 4 this")
    reader.save()
    basic = b64encode(f"{reader.username}:long enough 4 this".encode()).decode()
    assert client.get("/metrics", headers={"Authorization": f"Basic {basic}"}).status_code == 200


@pytest.mark.parametrize(
    "accept",
    [
        "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
        "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
        "text/plain;version=0.0.4",
        "*/*",
    ],
    ids=["Prometheus 2", "text format", "any"],
)
def test_accept_header_of_prometheus_is_not_read_as_a_microversion(
    client: Client, cloud_admin: User, accept: str
) -> None:
    client.force_login(cloud_admin)
    answer = client.get("/metrics", headers={"Accept": accept})
    assert (answer.status_code, answer["Content-Type"].partition(";")[0]) == (200, "text/plain")


@pytest.mark.django_db
@pytest.mark.parametrize("token", ["", "wrong", "f" * 64, "two words", "caf\u00e9"])
def test_invalid_bearer_token_is_refused(client: Client, token: str) -> None:
    assert client.get("/metrics", headers={"Authorization": f"Bearer {token}"}).status_code == 401


def test_bearer_token_is_accepted_only_for_metrics(client: Client, reader: User) -> None:
    _, token = AuthToken.objects.create(reader)
    assert client.get("/v1/goals", headers={"Authorization": f"Bearer {token}"}).status_code == 401


def test_local_bearer_token_is_ignored_if_only_keystone_is_a_source(
    rf: RequestFactory, reader: User, settings: Settings
) -> None:
    settings.TOKEN_SOURCES = ["keystone"]
    _, token = AuthToken.objects.create(reader)
    request = rf.get("/metrics", headers={"Authorization": f"Bearer {token}"})
    assert BearerAuthentication().authenticate(request) is None


# The gauges.


def test_unfinished_plans_are_counted_by_state(client: Client, cloud_admin: User) -> None:
    for state in (State.RECOMMENDED, State.PENDING, State.PENDING, State.SUCCEEDED):
        make_plan(state=state)
    found = read_metrics(client, cloud_admin)
    assert found["watcher_action_plans", "RECOMMENDED"] == 1
    assert found["watcher_action_plans", "PENDING"] == 2
    assert found["watcher_action_plans", "ONGOING"] == 0
    assert ("watcher_action_plans", "SUCCEEDED") not in found


def test_age_of_waiting_plans_is_that_of_the_oldest(client: Client, cloud_admin: User) -> None:
    for _ in range(2):
        make_plan(state=State.PENDING)
    ActionPlan.objects.filter(pk=ActionPlan.objects.earliest("pk").pk).update(
        created_at=long_ago(), updated_at=long_ago()
    )
    found = read_metrics(client, cloud_admin)
    assert found["watcher_action_plans_waiting",] == 2
    assert 600 <= found["watcher_action_plans_oldest_waiting_seconds",] < 3600


def test_scheduled_plan_is_not_counted_as_waiting(client: Client, cloud_admin: User) -> None:
    make_plan(state=State.PENDING, opens_at=timezone.now() + timedelta(hours=1))
    found = read_metrics(client, cloud_admin)
    assert found["watcher_action_plans_waiting",] == 0
    assert found["watcher_action_plans_oldest_waiting_seconds",] == 0


def test_unfinished_actions_are_counted_by_state(client: Client, cloud_admin: User) -> None:
    make_plan({"a": [], "b": ["a"]})
    found = read_metrics(client, cloud_admin)
    assert (found["watcher_actions", "PENDING"], found["watcher_actions", "ONGOING"]) == (2, 0)


def test_executable_actions_of_running_plans_are_ready(client: Client, cloud_admin: User) -> None:
    make_plan({"a": [], "b": ["a"]}, state=State.ONGOING, start_time=long_ago())
    make_plan({"a": []})
    Action.objects.update(created_at=long_ago())
    found = read_metrics(client, cloud_admin)
    assert found["watcher_actions_ready",] == 1
    assert 600 <= found["watcher_actions_oldest_ready_seconds",] < 3600


def test_action_is_ready_since_the_end_of_its_last_parent(client: Client, cloud_admin: User) -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state=State.ONGOING, start_time=long_ago())
    Action.objects.update(created_at=long_ago())
    Action.objects.filter(pk=action(plan, "a").pk).update(state="SUCCEEDED", updated_at=timezone.now())
    found = read_metrics(client, cloud_admin)
    assert found["watcher_actions_ready",] == 1
    assert found["watcher_actions_oldest_ready_seconds",] < 300


def test_unfinished_audits_are_counted_by_type_and_state(client: Client, cloud_admin: User) -> None:
    make_audit("one", state="PENDING")
    make_audit("two", state="ONGOING", audit_type="CONTINUOUS", next_run_time=timezone.now() + timedelta(hours=1))
    found = read_metrics(client, cloud_admin)
    assert found["watcher_audits", "ONESHOT", "PENDING"] == 1
    assert found["watcher_audits", "CONTINUOUS", "ONGOING"] == 1
    assert found["watcher_audits", "EVENT", "SUSPENDED"] == 0


def test_overdue_audit_is_due(client: Client, cloud_admin: User) -> None:
    make_audit("late", state="ONGOING", audit_type="CONTINUOUS", next_run_time=long_ago())
    found = read_metrics(client, cloud_admin)
    assert found["watcher_audits_due",] == 1
    assert 600 <= found["watcher_audits_oldest_due_seconds",] < 3600


def test_claimed_audit_is_not_due(client: Client, cloud_admin: User) -> None:
    engine = Service.register(Service.DECISION_ENGINE, "ctrl-1")
    make_audit(state="ONGOING", audit_type="CONTINUOUS", next_run_time=long_ago(), decision_engine=engine)
    found = read_metrics(client, cloud_admin)
    assert (found["watcher_audits_due",], found["watcher_audits_oldest_due_seconds",]) == (0, 0)


def test_services_are_counted_by_name_and_status(client: Client, cloud_admin: User) -> None:
    Service.register(Service.APPLIER, "ctrl-1")
    Service.objects.create(name=Service.APPLIER, host="ctrl-2", last_seen_up=long_ago())
    found = read_metrics(client, cloud_admin)
    assert found["watcher_services", "watcher-applier", "ACTIVE"] == 1
    assert found["watcher_services", "watcher-applier", "FAILED"] == 1
    assert found["watcher_services", "watcher-relay", "ACTIVE"] == 0


def test_undispatched_notifications_have_a_number_and_an_age(client: Client, cloud_admin: User) -> None:
    for created_at in (timezone.now(), long_ago()):
        make_notification(created_at=created_at)
    found = read_metrics(client, cloud_admin)
    assert found["watcher_notifications_undispatched",] == 2
    assert 600 <= found["watcher_notifications_oldest_undispatched_seconds",] < 3600


def make_notification(**columns: Any) -> Notification:
    text = {"kind": "action", "event_type": "action.update", "priority": "info", "host": "ctrl-1"}
    return Notification.objects.create(object_uuid=uuid4(), snapshot={}, **text, **columns)


def test_receiver_without_deliveries_is_exported_with_zeros(client: Client, cloud_admin: User) -> None:
    Subscription.objects.create(name="pager", url="https://pager.example.org/", secret="")
    found = read_metrics(client, cloud_admin)
    assert found["watcher_deliveries", "pager", "PENDING"] == 0
    assert found["watcher_deliveries_oldest_seconds", "pager"] == 0
    assert found["watcher_deliveries", "broker", "UNDELIVERED"] == 0


def test_deliveries_are_counted_by_receiver_and_state(client: Client, cloud_admin: User) -> None:
    pager = Subscription.objects.create(name="pager", url="https://pager.example.org/", secret="")
    Delivery.objects.create(
        notification=make_notification(is_dispatched=True), subscription=pager, line=uuid4(), created_at=long_ago()
    )
    found = read_metrics(client, cloud_admin)
    assert found["watcher_deliveries", "pager", "PENDING"] == 1
    assert 600 <= found["watcher_deliveries_oldest_seconds", "pager"] < 3600


def test_last_synchronization_has_its_time_and_failure(client: Client, cloud_admin: User) -> None:
    began = timezone.now()
    Synchronization.objects.create(pk=Synchronization.ONLY, succeeded_at=began, problem="Nova does not answer")
    found = read_metrics(client, cloud_admin)
    assert found["watcher_cloud_last_reading_timestamp_seconds",] == pytest.approx(began.timestamp())
    assert found["watcher_cloud_last_reading_failed",] == 1


def test_cloud_without_a_synchronization_has_no_time(client: Client, cloud_admin: User) -> None:
    assert ("watcher_cloud_last_reading_timestamp_seconds",) not in read_metrics(client, cloud_admin)


def test_build_versions_are_exported(client: Client, cloud_admin: User) -> None:
    assert any(name == "watcher_build_info" for name, *_ in read_metrics(client, cloud_admin))


def test_metrics_of_the_site_are_the_same_for_each_web_process_if_these_have_a_port(
    client: Client, cloud_admin: User, settings: Settings
) -> None:
    settings.METRICS_PORTS = {"web": range(9105, 9106)}
    names = {name for name, *_ in read_metrics(client, cloud_admin)}
    gauges = {metric.name for metric in all_metrics() if metric.kind == "gauge"}
    assert "watcher_action_plans" in names
    assert names - gauges == set()


def test_query_count_does_not_depend_on_the_tables(
    client: Client, cloud_admin: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    client.force_login(cloud_admin)
    for _ in range(3):
        make_plan({"a": [], "b": ["a"]}, state=State.ONGOING)
        make_notification()
    make_audit(audit_type=Audit.Type.EVENT)
    with django_assert_num_queries(14):
        client.get("/metrics")


def test_samples_contain_no_object_ids(client: Client, cloud_admin: User) -> None:
    plan = make_plan({"a": []}, state=State.ONGOING)
    client.force_login(cloud_admin)
    client.get(f"/v1/action_plans/{plan.uuid}")
    client.get(f"/console/plans/{plan.uuid}/")
    text = client.get("/metrics").content.decode()
    assert re.findall(r"[0-9a-f]{8}-[0-9a-f]{4}-", text) == []


def test_state_counters_start_at_zero(client: Client, cloud_admin: User) -> None:
    found = read_metrics(client, cloud_admin)
    assert ("watcher_state_changes_total", "actionplan", "SUPERSEDED") in found
    assert ("watcher_state_changes_total", "stack", "CREATE_FAILED") in found


# The metrics without known label values, or with too many combinations of them, and the reasons.
NOT_INITIALIZED = {
    "watcher_http_requests": "views, methods and statuses have too many combinations",
    "watcher_http_request_duration_seconds": "views and methods have too many combinations",
    "watcher_action_duration_seconds": "types, states and buckets have too many combinations",
    "watcher_audit_run_duration_seconds": "strategies, outcomes and buckets have too many combinations",
    "watcher_cloud_requests": "the catalog of the cloud names the services",
    "watcher_cloud_request_duration_seconds": "the catalog of the cloud names the services",
}


def test_each_counter_is_initialized_or_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    counters = [metric for metric in vars(metrics).values() if isinstance(metric, Counter | Histogram)]
    for metric in counters:
        if metric._labelnames:
            monkeypatch.setattr(metric, "_metrics", {})
    initialize_counters()
    missing = {metric._name for metric in counters if metric._labelnames and not metric._metrics}
    assert missing == set(NOT_INITIALIZED)
