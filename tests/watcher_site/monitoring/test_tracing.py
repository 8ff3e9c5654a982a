"""Requests, actions and runs of audits are spans of OpenTelemetry, which join in one trace."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from pytest_django import Settings

from actions.exclusions.rules import current_rules
from actions.types.base import DONE, ActionFailed, Outcome
from actions.types.nop import Nop
from audits.engine.engine import DecisionEngine
from cluster.drivers.base import ServerNotFound, cloud, load_driver
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from plans.workers.messages import JobMessage
from tests.actions.exclusions.builders import make_exclusion
from tests.api import Caller
from tests.builders import make_audit, make_plan, make_strategy
from tests.plans.inline import run_waiting
from tests.plans.workers.test_request_ids import MESSAGE
from tests.watcher_site.monitoring.spans import named, recording
from tests.watcher_site.site_process import free_port_number, run
from watcher_site.models import Service
from watcher_site.monitoring.tracing import TRACE_ID, add_trace_id, tracing
from watcher_site.request_context import CallingContext, seal

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


@pytest.fixture
def spans(settings: Settings) -> Iterator[InMemorySpanExporter]:
    settings.TRACING = True
    settings.MIDDLEWARE = ["watcher_site.web.request_spans.RequestSpans", *settings.MIDDLEWARE]
    with recording() as exporter:
        yield exporter


def attributes(spans: InMemorySpanExporter, name: str) -> dict[str, Any]:
    return dict(named(spans.get_finished_spans(), name).attributes or {})


# Requests.


def test_request_is_a_span_with_its_view_status_and_id(api: Caller, spans: InMemorySpanExporter) -> None:
    answer = api.get("/goals")
    found = attributes(spans, "GET api-goals")
    assert found["http.response.status_code"] == 200
    assert found["url.path"] == "/v1/goals"
    assert found["watcher.request_id"] == answer["x-openstack-request-id"]


def test_query_of_a_request_is_not_exported(api: Caller, spans: InMemorySpanExporter) -> None:
    api.get("/goals?limit=17171717")
    assert "17171717" not in str(attributes(spans, "GET api-goals"))


def test_request_continues_the_trace_of_its_client(api: Caller, spans: InMemorySpanExporter) -> None:
    api.get("/goals", traceparent=TRACEPARENT)
    span = named(spans.get_finished_spans(), "GET api-goals")
    assert (format(span.context.trace_id, "032x"), format(span.parent.span_id, "016x")) == (TRACE, PARENT)


def test_invalid_traceparent_starts_a_new_trace(api: Caller, spans: InMemorySpanExporter) -> None:
    assert api.get("/goals", traceparent="00-nonsense").status_code == 200
    assert named(spans.get_finished_spans(), "GET api-goals").parent is None


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/static/watcher_site/icon.svg"])
def test_probes_and_static_files_are_not_traced(client: Client, spans: InMemorySpanExporter, path: str) -> None:
    client.get(path)
    assert spans.get_finished_spans() == ()


def test_internal_error_is_a_failed_span(
    client: Client, cloud_admin: User, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("secret")

    client.raise_request_exception = False
    client.force_login(cloud_admin)
    monkeypatch.setattr("plans.console.views.ActionPlanList.get", fail)
    client.get("/console/plans/")
    span = named(spans.get_finished_spans(), "GET plans:list")
    assert (span.status.status_code, (span.attributes or {})["error.type"]) == (StatusCode.ERROR, "500")
    assert "secret" not in span.to_json()


def test_access_log_has_the_trace_id_of_the_request(api: Caller, spans: InMemorySpanExporter) -> None:
    answer = api.get("/goals", traceparent=TRACEPARENT)
    assert answer.wsgi_request.META[TRACE_ID] == TRACE


# Actions.


def test_action_belongs_to_the_trace_of_the_start_request(api: Caller, spans: InMemorySpanExporter) -> None:
    plan = make_plan({"a": []})
    answer = api.post(f"/action_plans/{plan.uuid}/start")
    run_waiting()
    finished = spans.get_finished_spans()
    request, action = (named(finished, name) for name in ("POST api-action_plans-start", "run nop"))
    assert (action.context.trace_id, action.parent.span_id) == (request.context.trace_id, request.context.span_id)
    assert attributes(spans, "run nop") == {
        "watcher.action": str(plan.actions.get().uuid),
        "watcher.action_type": "nop",
        "watcher.plan": str(plan.uuid),
        "watcher.request_id": answer["x-openstack-request-id"],
        "watcher.attempt": 1,
        "watcher.state": "SUCCEEDED",
    }


@pytest.mark.django_db
def test_span_has_the_state_of_an_action_that_was_checked_again(spans: InMemorySpanExporter) -> None:
    """An exclusion that was created since this process read them refuses the first beginning of the action."""
    make_plan({"a": []}, state="PENDING")
    current_rules()
    make_exclusion(action_types=["migrate"])
    run_waiting()
    assert attributes(spans, "run nop")["watcher.state"] == "SUCCEEDED"


@pytest.mark.django_db
def test_action_of_a_plan_without_a_start_request_starts_a_trace(spans: InMemorySpanExporter) -> None:
    make_plan({"a": []}, state="PENDING")
    run_waiting()
    assert named(spans.get_finished_spans(), "run nop").parent is None


@pytest.mark.django_db
def test_failed_action_is_a_failed_span_without_its_message(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(self: Nop) -> Outcome:
        raise ActionFailed("a detail of the cloud")

    monkeypatch.setattr(Nop, "execute", execute)
    make_plan({"a": []}, state="PENDING")
    run_waiting()
    span = named(spans.get_finished_spans(), "run nop")
    assert (span.status.status_code, (span.attributes or {})["watcher.state"]) == (StatusCode.ERROR, "FAILED")
    assert "detail" not in span.to_json()


@pytest.mark.django_db
def test_log_lines_of_an_action_have_its_trace_ids(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = []

    def execute(self: Nop) -> Outcome:
        lines.append(add_trace_id(None, "info", {"event": "executed"}))
        return DONE

    monkeypatch.setattr(Nop, "execute", execute)
    make_plan({"a": []}, state="PENDING")
    run_waiting()
    context = named(spans.get_finished_spans(), "run nop").context
    ids = {"trace_id": format(context.trace_id, "032x"), "span_id": format(context.span_id, "016x")}
    assert lines == [{"event": "executed", **ids}]


def test_log_line_outside_of_spans_has_no_trace_id() -> None:
    assert add_trace_id(None, "info", {"event": "started"}) == {"event": "started"}


@pytest.mark.django_db
def test_plan_lease_has_the_traceparent_of_its_plan() -> None:
    plan = ActionPlan(pk=1, context=seal(CallingContext(traceparent=TRACEPARENT)))
    lease = PlanLease.of(plan, Service(pk=2, host="here"))
    assert (lease.traceparent, lease.plan_uuid) == (TRACEPARENT, str(plan.uuid))


def test_worker_message_has_the_traceparent() -> None:
    message = JobMessage.of({**MESSAGE, "traceparent": TRACEPARENT, "plan_uuid": "p"})
    read = JobMessage.of(message.as_arguments())
    assert (read.traceparent, read.plan_uuid) == (TRACEPARENT, "p")


def test_worker_message_of_the_previous_release_has_no_traceparent() -> None:
    message = JobMessage.of(MESSAGE)
    assert (message.traceparent, message.plan_uuid) == ("", "")


# Audits and the cloud.


@pytest.mark.django_db
def test_actions_started_by_an_audit_belong_to_its_trace(spans: InMemorySpanExporter) -> None:
    strategy = make_strategy()
    make_audit(goal=strategy.goal, strategy=strategy, auto_trigger=True)
    DecisionEngine().run_next_audit()
    run_waiting()
    finished = spans.get_finished_spans()
    audit = named(finished, "run audit")
    assert {span.context.trace_id for span in finished} == {audit.context.trace_id}
    assert "run nop" in {span.name for span in finished}


@pytest.fixture
def driver(settings: Settings) -> Iterator[None]:
    load_driver.cache_clear()
    yield
    load_driver.cache_clear()


@pytest.mark.django_db
def test_cloud_operation_is_a_span(spans: InMemorySpanExporter, driver: None) -> None:
    with pytest.raises(ServerNotFound):
        cloud().find_server("7a7c9b4e-8d0d-4a58-8a1f-1f6f5f1d2a11")
    assert attributes(spans, "cloud find_server") == {"watcher.cloud": "EmbeddedCloud", "error.type": "ServerNotFound"}


# Settings.


def test_service_name_is_the_process_name_unless_a_variable_sets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with recording() as exporter, tracing.span("a", {}):
        pass
    monkeypatch.setenv("OTEL_SERVICE_NAME", "watcher-north")
    with recording() as other, tracing.span("b", {}):
        pass
    names = [e.get_finished_spans()[0].resource.attributes["service.name"] for e in (exporter, other)]
    assert names == ["watcher-test", "watcher-north"]


def test_opentelemetry_is_not_imported_without_tracing() -> None:
    code = """
import sys, django
django.setup()
from watcher_site.wsgi import application
from watcher_site.monitoring.tracing import tracing
import plans.tasks, cluster.drivers.openstack.session
tracing.start("watcher-web")
with tracing.span("a", {"b": 1}) as span:
    span.fail("c")
tracing.stop()
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""
    assert run("-c", code, DJANGO_SETTINGS_MODULE="watcher_site.settings").stdout == "[]\n"


def test_tracing_without_its_packages_is_one_line_with_status_2() -> None:
    code = """
import sys
sys.modules["opentelemetry"] = None
from watcher_site.processes.command_line import run_command
sys.exit(run_command(["manage.py", "check"]))
"""
    process = run("-c", code, DJANGO_SETTINGS_MODULE="watcher_site.settings", WATCHER_TRACING="true")
    reason = "needs the packages of OpenTelemetry, which the extra [tracing] brings."
    assert (process.returncode, process.stderr) == (2, f"WATCHER_TRACING: {reason}\n")


def test_web_process_exits_once_for_options_refused_by_opentelemetry() -> None:
    ended = run(
        *("-m", "gunicorn", "--config", "python:watcher_site.gunicorn"),
        DATABASE_URL="postgres://watcher@127.0.0.1:1/watcher",
        PORT=str(free_port_number()),
        WATCHER_TRACING="true",
        OTEL_BSP_MAX_QUEUE_SIZE="1",
    )
    (line,) = [line for line in ended.stderr.splitlines() if not line.startswith("{")]
    assert (ended.returncode, line.partition(":")[0]) == (2, "OTEL_…")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ("OTEL_TRACES_SAMPLER", "sometimes"),
        ("OTEL_TRACES_SAMPLER_ARG", "2"),
    ],
)
def test_invalid_opentelemetry_variable_is_one_line_with_status_2(name: str, value: str) -> None:
    process = run("manage.py", "check", WATCHER_TRACING="true", **{name: value})
    assert process.returncode == 2
    assert process.stderr.startswith(f"{name}: must be")
    assert process.stderr.count("\n") == 1
