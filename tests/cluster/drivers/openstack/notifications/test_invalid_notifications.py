"""Invalid notifications are counted, logged once per kind and skipped."""

from threading import Event
from typing import Any

import pytest
from django.db import OperationalError
from pytest_django import Settings
from structlog.testing import capture_logs

from cluster.drivers.openstack.notifications import listener
from cluster.drivers.openstack.notifications.events import CINDER, NOVA
from cluster.drivers.openstack.notifications.listener import HANDLED, REQUEUE, Endpoint, Progress
from cluster.models import HostAggregate, Server
from tests.builders import make_aggregate
from tests.cluster.drivers.openstack.notifications.samples import (
    SERVER,
    aggregate,
    ago,
    flavor,
    instance,
    message,
    service,
    stamp,
    versioned,
    volume,
)
from tests.cluster.emulator.server import Emulator

pytestmark = pytest.mark.django_db


def unknown(payload: str) -> str:
    return f"The payload {payload} is not known."


@pytest.fixture
def endpoint() -> Endpoint:
    return Endpoint({**NOVA, **CINDER}, Progress(), Event())


def receive(endpoint: Endpoint, event: str, payload: Any, **columns: Any) -> tuple[str, list[str]]:
    """Return the result of the endpoint and the lines that it logged."""
    sent = {**message(event, payload), **columns}
    with capture_logs() as lines:
        answer = endpoint.info({}, sent["publisher_id"], event, sent["payload"], {"timestamp": sent["timestamp"]})
    return answer, [f"{line['event']}: {line.get('reason')}" for line in lines]


@pytest.mark.parametrize(
    ("event", "payload", "reason"),
    [
        ("instance.update", instance("InstanceUpdatePayload", "3.0"), unknown("InstanceUpdatePayload 3.0")),
        ("instance.lock", instance(version="2.0"), unknown("InstanceActionPayload 2.0")),
        ("instance.lock", versioned("NewPayload", "1.0", {}), unknown("NewPayload 1.0")),
        ("instance.lock", instance(version="one"), unknown("InstanceActionPayload one")),
        ("instance.lock", instance(flavor=versioned("FlavorPayload", "9.0", {})), unknown("FlavorPayload 9.0")),
        ("instance.lock", versioned("FlavorPayload", "1.0", {}), "instance: $: 'uuid' is a required property."),
        ("instance.lock", instance(uuid="secret"), "instance: $.uuid: a value breaks the rule 'pattern'."),
        ("instance.lock", instance(created_at="yesterday"), None),
        ("instance.lock", instance(launched_at="soon"), "launched_at is not a time."),
        ("instance.lock", instance(flavor=flavor(vcpus=-1)), "flavor: $.vcpus: a value breaks the rule 'minimum'."),
        ("instance.lock", "text", "versioned payload: $: it is not an object."),
        ("instance.lock", None, "versioned payload: $: it is not an object."),
        ("service.update", service(disabled="yes"), "service: $.disabled: a value breaks the rule 'type'."),
        ("aggregate.create.end", aggregate(number=-1), "aggregate: $.id: a value breaks the rule 'minimum'."),
        ("volume.create.end", volume(size="10"), "volume: $.size: a value breaks the rule 'type'."),
        ("volume.create.end", volume(volume_attachment=[{}]), None),
        ("volume.create.end", {}, None),
        ("volume.create.end", [], "volume: $: it is not an object."),
    ],
)  # fmt: skip
def test_invalid_payload_is_skipped_counted_and_logged_in_one_line(
    synced: Emulator, endpoint: Endpoint, event: str, payload: Any, reason: str | None
) -> None:
    answer, lines = receive(endpoint, event, payload)
    assert (answer, endpoint.progress.handled, endpoint.progress.skipped) == (HANDLED, 1, 1)
    assert len(lines) == 1
    assert lines[0] == f"notification skipped: {reason}" if reason else lines[0].startswith("notification skipped: ")
    assert "secret" not in lines[0]


@pytest.mark.parametrize("timestamp", [None, "", "yesterday", 5])
def test_invalid_timestamp_is_skipped(synced: Emulator, endpoint: Endpoint, timestamp: Any) -> None:
    answer, lines = receive(endpoint, "instance.lock", instance(locked=True), timestamp=timestamp)
    assert (answer, lines) == (HANDLED, ["notification skipped: timestamp is not a time."])
    assert not Server.objects.get(uuid=SERVER).locked


def test_timestamp_in_the_future_does_not_block_later_notifications(synced: Emulator, endpoint: Endpoint) -> None:
    receive(endpoint, "instance.lock", instance(locked=True), timestamp=stamp(ago(-3600)))
    receive(endpoint, "instance.unlock", instance(locked=False))
    assert not Server.objects.get(uuid=SERVER).locked


def test_only_the_first_invalid_notification_of_a_kind_is_logged(synced: Emulator, endpoint: Endpoint) -> None:
    receive(endpoint, "instance.lock", instance(version="2.0"))
    assert receive(endpoint, "instance.lock", instance(version="2.0")) == (HANDLED, [])
    assert endpoint.progress.skipped == 2
    _, lines = receive(endpoint, "instance.lock", instance(version="3.0"))
    assert len(lines) == 1


def test_number_of_logged_kinds_is_limited(
    synced: Emulator, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "MAX_LOGGED_KINDS", 2)
    logged = [receive(endpoint, "instance.lock", instance(version=f"{major}.0"))[1] for major in range(2, 6)]
    assert [len(lines) for lines in logged] == [1, 1, 0, 0]


def test_later_minor_version_is_accepted(synced: Emulator, endpoint: Endpoint) -> None:
    assert receive(endpoint, "instance.lock", instance(version="1.99", locked=True, brand_new="field")) == (
        HANDLED,
        [],
    )
    assert Server.objects.get(uuid=SERVER).locked


def test_notification_violating_a_database_constraint_is_skipped(synced: Emulator, endpoint: Endpoint) -> None:
    make_aggregate(2, "racks")
    answer, lines = receive(endpoint, "aggregate.create.end", aggregate(number=1, name="racks"))
    assert (answer, len(lines), HostAggregate.objects.count()) == (HANDLED, 1, 1)
    assert lines[0].startswith("notification skipped: The tables of the site do not accept an object of the cloud: ")


def test_text_that_the_database_cannot_store_is_skipped(synced: Emulator, endpoint: Endpoint) -> None:
    answer, _ = receive(endpoint, "instance.lock", instance(task_state="x" * 65 + "\0"))
    assert answer == HANDLED


def test_notification_that_raises_an_unexpected_error_is_skipped(
    synced: Emulator, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> bool:
        raise KeyError("secret")

    monkeypatch.setitem(endpoint.handlers, "instance.lock", fail)  # type: ignore[arg-type]
    answer, _ = receive(endpoint, "instance.lock", instance())
    assert (answer, endpoint.progress.skipped) == (HANDLED, 1)


def test_notification_is_requeued_after_a_lost_database_connection(
    synced: Emulator, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    def lose(*_: Any) -> bool:
        raise OperationalError("the connection is closed")

    settings.POLL_INTERVAL = 0
    monkeypatch.setattr(listener.connection, "close", lambda: None)
    monkeypatch.setitem(endpoint.handlers, "instance.lock", lose)  # type: ignore[arg-type]
    answer, _ = receive(endpoint, "instance.lock", instance())
    assert (answer, endpoint.progress.handled, endpoint.progress.skipped) == (REQUEUE, 0, 0)
