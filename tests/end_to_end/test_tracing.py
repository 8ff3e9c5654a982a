"""Real processes send their spans to an OTLP collector, and work without a collector."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from django.contrib.auth.models import User
from knox.models import AuthToken

from actions.models import Action
from plans.models import ActionPlan
from tests.broker import BROKER_URL, own_queues
from tests.builders import make_plan
from tests.cluster.emulator.placement import inventory
from tests.cluster.emulator.server import Emulator
from tests.end_to_end.processes.test_metrics_ports import read, web_process
from tests.processes import start_command
from tests.waiting import PATIENCE, wait_for
from tests.watcher_site.monitoring.spans import Collector
from watcher_site.models import Service

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def tracing_to(address: str, **variables: str) -> dict[str, str]:
    """Return the environment of processes that send their spans when they exit, unless the queue is full."""
    return {
        "WATCHER_TRACING": "true",
        "OTEL_EXPORTER_OTLP_ENDPOINT": address,
        "OTEL_BSP_SCHEDULE_DELAY": "3600000",
        "WATCHER_POLL_INTERVAL": "0.1",
        **variables,
    }


@pytest.fixture
def token(cloud_admin: User) -> str:
    _, token = AuthToken.objects.create(cloud_admin)
    return str(token)


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of processes that use an emulated OpenStack cloud with a host."""
    emulator = Emulator().start()
    (tmp_path / "clouds.yaml").write_text(emulator.clouds_yaml())
    node = emulator.nova.add_host("compute1")
    emulator.placement.inventories[node] = {"VCPU": inventory(16, 1, 4.0), "MEMORY_MB": inventory(32768, 512, 1.5)}
    variables = {
        "OS_CLIENT_CONFIG_FILE": str(tmp_path / "clouds.yaml"),
        "OS_CLOUD": "emulated",
        "WATCHER_CLOUD": "cluster.drivers.openstack.OpenStackCloud",
        "WATCHER_OPENSTACK_POLL_INTERVAL": "0.1",
    }
    assert start_command("sync_cluster", **variables).wait(PATIENCE) == 0
    yield variables
    emulator.stop()


def start_plan(port: int, plan: ActionPlan, token: str, **headers: str) -> str:
    """Start a plan by the API, and return the id of the request."""
    url = f"http://127.0.0.1:{port}/v1/action_plans/{plan.uuid}/start"
    answer = urlopen(Request(url, method="POST", headers={"X-Auth-Token": token, **headers}), timeout=PATIENCE)
    return str(answer.headers["x-openstack-request-id"])


def plan_of(type: str, parameters: dict[str, Any]) -> ActionPlan:
    plan = make_plan({"a": []})
    plan.actions.update(action_type=type, input_parameters=parameters)
    return plan


def all_actions_are_final() -> bool:
    return not Action.objects.exclude(state__in=Action.FINAL).exists()


def test_trace_contains_the_request_its_action_and_the_cloud_calls(token: str, cloud: dict[str, str]) -> None:
    plan = plan_of(
        "change_nova_service_state", {"resource_id": "compute1", "resource_name": "compute1", "state": "disabled"}
    )
    with Collector() as collector:
        environment = tracing_to(collector.address, **cloud)
        applier = start_command("run_applier", **environment, WATCHER_LOG_LEVEL="INFO")
        with web_process(**environment) as (port, server):
            request_id = start_plan(port, plan, token, traceparent=f"00-{TRACE}-00f067aa0ba902b7-01")
            wait_for(all_actions_are_final)
            applier.terminate()
            _, errors = applier.communicate(PATIENCE)
            server.send_signal(signal.SIGTERM)
            server.wait(PATIENCE)
    (request,) = collector.named("POST api-action_plans-start")
    (action,) = collector.named("run change_nova_service_state")
    (call,) = [span for span in collector.named("PUT compute") if span["trace"] == TRACE]
    assert (request["service"], request["trace"]) == ("watcher-web", TRACE)
    assert (action["service"], action["trace"], action["parent"]) == ("watcher-applier", TRACE, request["span"])
    ids = [span["attributes"]["watcher.request_id"] for span in (request, action, call)]
    assert ids == [request_id] * 3
    (operation,) = [span for span in collector.spans if span["span"] == call["parent"]]
    assert (operation["name"], operation["parent"]) == ("cloud disable_compute_service", action["span"])
    lines = [json.loads(line) for line in errors.splitlines() if "trace_id" in line]
    assert {(line["trace_id"], line["request_id"]) for line in lines} == {(TRACE, request_id)}


@pytest.mark.rabbitmq
def test_trace_of_a_request_is_propagated_to_a_worker(token: str) -> None:
    plan = make_plan({"a": []})
    with own_queues() as queues, Collector() as collector:
        celery = {
            "WATCHER_EXECUTOR": "celery",
            "CELERY_BROKER_URL": BROKER_URL,
            "WATCHER_CELERY_QUEUE": queues[0],
        }
        environment = tracing_to(collector.address, **celery)
        applier = start_command("run_applier", **environment)
        worker = start_command("run_worker", "--workers=1", **environment)
        with web_process(**environment) as (port, _):
            start_plan(port, plan, token, traceparent=f"00-{TRACE}-00f067aa0ba902b7-01")
            wait_for(all_actions_are_final)
        for process in (applier, worker):
            process.terminate()
            process.wait(PATIENCE)
    (action,) = collector.named("run nop")
    assert (action["service"], action["trace"]) == ("watcher-worker", TRACE)
    assert action["attributes"]["watcher.plan"] == str(plan.uuid)


@pytest.mark.parametrize("hangs", [False, True], ids=["refuses connections", "does not answer"])
def test_processes_work_and_stop_without_a_collector(token: str, hangs: bool) -> None:
    plan = make_plan({"a": []})
    with Collector(hangs=True) as collector:
        address = collector.address if hangs else "http://127.0.0.1:1"
        # The processes send spans immediately, and their timeout is longer than the test.
        patient = {"OTEL_BSP_SCHEDULE_DELAY": "10", "OTEL_EXPORTER_OTLP_TIMEOUT": str(2 * PATIENCE)}
        environment = tracing_to(address, **patient)
        applier = start_command("run_applier", **environment)
        with web_process(**environment) as (port, server):
            start_plan(port, plan, token)
            wait_for(all_actions_are_final)
            assert read(port, "/healthz")
            for process in (applier, server):
                process.terminate()
                process.wait(PATIENCE)
    assert (applier.returncode, server.returncode) == (0, 0)
    assert not Service.objects.active().exists()


def test_invalid_opentelemetry_option_is_refused_in_one_line_with_status_2() -> None:
    environment = tracing_to("http://127.0.0.1:1", OTEL_BSP_MAX_QUEUE_SIZE="1")
    applier = start_command("run_applier", **environment)
    _, errors = applier.communicate(PATIENCE)
    assert (applier.returncode, errors.count("\n")) == (2, 1)
    assert not Service.objects.exists()
