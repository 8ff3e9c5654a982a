"""Real ``manage.py listen_notifications`` processes with RabbitMQ: stopped, killed and disconnected."""

import signal
from collections.abc import Iterator
from subprocess import Popen

import pytest
from django.db import connection, transaction
from kombu import Connection

from cluster.models import Server, Synchronization, Volume
from tests.broker import BROKER_URL, BrokerProxy
from tests.builders import make_node, make_server
from tests.cluster.drivers.openstack.notifications.listener import CloudTopics, cloud_topics, state_of
from tests.cluster.drivers.openstack.notifications.samples import SERVER, ago, instance, message, volume
from tests.processes import Process, start_command, start_fresh_command
from tests.waiting import wait_for
from tests.watcher_site.notifications.listener import TRANSPORT_URL
from watcher_site.models import Service

pytestmark = [
    pytest.mark.slow,
    pytest.mark.postgresql,
    pytest.mark.rabbitmq,
    pytest.mark.django_db(transaction=True),
]
END_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


@pytest.fixture
def topics() -> Iterator[CloudTopics]:
    make_server("web", make_node(), uuid=SERVER)
    with cloud_topics() as topics:
        yield topics


def listener() -> Service:
    return Service.objects.present().filter(name=Service.LISTENER).latest("pk")


def end(process: Process) -> str:
    """Stop a process, and return what it logged."""
    process.terminate()
    _, errors = process.communicate(60)
    assert process.returncode == 0
    return errors


def test_listener_handles_nova_and_cinder_notifications_and_ends_on_sigterm(topics: CloudTopics) -> None:
    process = topics.start()
    topics.notify("instance.power_off.end", instance(state="stopped"))
    topics.notify("instance.exists", {"of no": "interest"})
    topics.notify("volume.create.end", volume(SERVER), "cinder")
    wait_for(lambda: state_of(SERVER) == "stopped")
    wait_for(lambda: Volume.objects.filter(servers__uuid=SERVER).exists())
    wait_for(lambda: (listener().handled, listener().skipped) == (2, 0))
    end(process)
    assert not Service.objects.present().exists()
    assert topics.count_waiting() == 0


def test_listener_starts_in_a_new_python_process(topics: CloudTopics) -> None:
    process: Popen[str] = topics.start(starter=start_fresh_command)
    topics.notify("instance.power_off.end", instance(state="stopped"))
    wait_for(lambda: state_of(SERVER) == "stopped")
    process.terminate()
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, "")
    assert "Traceback" not in errors


def test_notifications_wait_in_the_queue_while_no_listener_runs(topics: CloudTopics) -> None:
    end(topics.start())
    topics.notify("instance.power_off.end", instance(state="stopped"))
    wait_for(lambda: topics.count_waiting() == 1)
    topics.start()
    wait_for(lambda: state_of(SERVER) == "stopped")


def test_two_listeners_share_the_messages(topics: CloudTopics) -> None:
    topics.start()
    topics.start()
    for number in range(20):
        topics.notify("instance.rebuild.end", instance(display_name=f"web-{number}"))
    found = Service.objects.present().filter(name=Service.LISTENER)
    wait_for(lambda: sum(found.values_list("handled", flat=True)) == 20)
    wait_for(lambda: Server.objects.get(uuid=SERVER).name == "web-19")
    assert all(found.values_list("handled", flat=True))


def test_redelivered_message_changes_nothing(topics: CloudTopics) -> None:
    proxy = BrokerProxy()
    first = topics.start(proxy.url.replace("amqp://", "rabbit://").removesuffix("/"))
    Synchronization.current()
    with transaction.atomic():
        # The connection to the broker is closed while the listener waits for this row.
        Synchronization.lock()
        topics.notify("instance.power_off.end", instance(state="stopped"))
        wait_for(lambda: Service.objects.filter(lag__gt=0).exists())
        proxy.cut()
    wait_for(lambda: state_of(SERVER) == "stopped")
    first.kill()
    first.wait()
    wait_for(lambda: topics.count_waiting() == 1)
    written = Server.objects.values().get(uuid=SERVER)
    topics.start()
    wait_for(lambda: (listener().handled, topics.count_waiting()) == (1, 0))
    assert Server.objects.values().get(uuid=SERVER) == written


def test_message_of_a_killed_listener_is_handled_by_the_next_listener(topics: CloudTopics) -> None:
    first = topics.start()
    Synchronization.current()
    with transaction.atomic():
        Synchronization.lock()
        topics.notify("instance.power_off.end", instance(state="stopped"))
        wait_for(lambda: Service.objects.filter(lag__gt=0).exists())
        first.send_signal(signal.SIGKILL)
        first.wait()
    topics.start()
    wait_for(lambda: state_of(SERVER) == "stopped")


@pytest.mark.parametrize("options", ["amqp_durable_queues=true", "rabbit_quorum_queue=true"])
def test_queue_is_declared_with_the_options_of_the_url(topics: CloudTopics, options: str) -> None:
    topics.start(f"{TRANSPORT_URL}/?{options}")
    topics.publish(message("instance.power_off.end", instance(state="stopped")))
    wait_for(lambda: state_of(SERVER) == "stopped")


def test_message_is_handled_again_after_a_lost_database_connection(topics: CloudTopics) -> None:
    process = topics.start()
    Synchronization.current()
    with transaction.atomic():
        Synchronization.lock()
        topics.notify("instance.power_off.end", instance(state="stopped"))
        wait_for(lambda: listener().lag)
        with connection.cursor() as cursor:
            cursor.execute(END_OTHERS)
    wait_for(lambda: state_of(SERVER) == "stopped")
    wait_for(lambda: (listener().handled, listener().skipped) == (1, 0))
    assert "database lost" in end(process)


def test_listener_reports_a_lost_broker_and_resumes_after_reconnecting(topics: CloudTopics) -> None:
    proxy = BrokerProxy()
    process = topics.start(proxy.url.replace("amqp://", "rabbit://").removesuffix("/"))
    proxy.cut()
    wait_for(lambda: listener().problem == "The broker does not answer.")
    topics.notify("instance.power_off.end", instance(state="stopped"))
    proxy.restore()
    wait_for(lambda: state_of(SERVER) == "stopped")
    wait_for(lambda: listener().problem is None)
    assert "guest" not in end(process)


def test_listener_waits_for_an_unreachable_broker(topics: CloudTopics) -> None:
    proxy = BrokerProxy()
    proxy.cut()
    url = proxy.url.replace("amqp://", "rabbit://").removesuffix("/")
    process = start_command("listen_notifications", **topics.environment(url))
    topics.processes.append(process)
    wait_for(lambda: Service.objects.filter(problem="The broker does not answer.").exists())
    proxy.restore()
    wait_for(lambda: Service.objects.filter(name=Service.LISTENER, problem=None).exclude(lag=None).exists())
    end(process)


def test_listener_logs_the_start_and_the_end_of_its_lag(topics: CloudTopics) -> None:
    process = topics.start()
    Synchronization.current()
    with transaction.atomic():
        Synchronization.lock()
        topics.publish(message("instance.power_off.end", instance(state="stopped"), ago(300)))
        wait_for(lambda: (listener().lag or 0) > 299)
        assert str(listener().lag_problem).endswith(" seconds behind the cloud.")
    wait_for(lambda: listener().lag == 0)
    assert listener().lag_problem is None
    errors = end(process)
    assert "listener lags" in errors
    assert "listener caught up" in errors


@pytest.mark.parametrize("url", [TRANSPORT_URL.replace("guest@", "wrong@"), f"{TRANSPORT_URL}/no-such-host"])
def test_refused_login_or_virtual_host_ends_the_listener_with_status_2(topics: CloudTopics, url: str) -> None:
    process = start_command("listen_notifications", **{**topics.environment(url), "WATCHER_LOG_LEVEL": "ERROR"})
    _, errors = process.communicate(60)
    assert process.returncode == 2
    assert errors.startswith("CommandError: WATCHER_CLOUD_NOTIFICATION_URL: the broker refuses it: ")
    assert errors.count("\n") == 1


def test_queue_declared_with_other_properties_ends_the_listener_with_status_2(topics: CloudTopics) -> None:
    with Connection(BROKER_URL) as connection:
        connection.channel().queue_declare(topics.pool, durable=True, auto_delete=False)
    process = start_command("listen_notifications", **{**topics.environment(), "WATCHER_LOG_LEVEL": "ERROR"})
    _, errors = process.communicate(60)
    assert (process.returncode, errors.count("\n")) == (2, 1)
    assert "PRECONDITION_FAILED" in errors
