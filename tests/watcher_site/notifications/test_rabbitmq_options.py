"""The options of oslo.messaging's rabbit driver in a transport URL, and the resulting arguments of kombu."""

import ssl

import pytest
from oslo_config.cfg import NoSuchOptError
from oslo_messaging._drivers.impl_rabbit import QuorumMemConfig, _get_queue_arguments

from watcher_site.notifications.rabbitmq.connections import KeptConnection
from watcher_site.notifications.rabbitmq.publisher import default_queue, queue_arguments

URL = "rabbit://watcher:s%2Fecret@one:5671/site"


def test_each_broker_of_a_cluster_has_an_address() -> None:
    connection = KeptConnection("rabbit://watcher:s%2Fecret@one,watcher:secret@[::1]:5673/site")
    assert sorted(connection.addresses()) == [
        "amqp://watcher:s%2Fecret@one:5672/site",
        "amqp://watcher:secret@[::1]:5673/site",
    ]


def test_tls_parameters_are_absent_without_tls() -> None:
    assert KeptConnection(URL).tls_parameters() is False


def test_tls_without_files_uses_the_defaults() -> None:
    assert KeptConnection(f"{URL}?ssl=true").tls_parameters() is True


def test_ca_file_enables_verification_of_the_host_name() -> None:
    options = "ssl=true&ssl_ca_file=/ca.pem&ssl_cert_file=/own.pem&ssl_key_file=/own.key&ssl_version=TLSv1_2"
    assert KeptConnection(f"{URL}?{options}").tls_parameters() == {
        "ca_certs": "/ca.pem",
        "certfile": "/own.pem",
        "keyfile": "/own.key",
        "ssl_version": ssl.PROTOCOL_TLSv1_2,
        "cert_reqs": ssl.CERT_REQUIRED,
        "server_hostname": "one",
    }


@pytest.mark.parametrize(
    "query",
    [
        "",
        "rabbit_ha_queues=true",
        "rabbit_quorum_queue=true",
        "rabbit_quorum_queue=true&rabbit_quorum_delivery_limit=3",
        "rabbit_quorum_queue=true&rabbit_quorum_max_memory_length=5&rabbit_quorum_max_memory_bytes=7",
    ],
)
def test_queue_arguments_equal_those_of_oslo_messaging(query: str) -> None:
    options = KeptConnection(f"{URL}?{query}").options
    limits = QuorumMemConfig(
        options.rabbit_quorum_delivery_limit,
        options.rabbit_quorum_max_memory_length,
        options.rabbit_quorum_max_memory_bytes,
    )
    theirs = _get_queue_arguments(options.rabbit_ha_queues, 0, options.rabbit_quorum_queue, limits, False)
    assert queue_arguments(options) == theirs


@pytest.mark.parametrize(
    ("query", "durable", "auto_delete"),
    [
        ("", False, False),
        ("amqp_durable_queues=true", True, False),
        ("rabbit_quorum_queue=true", True, False),
        ("amqp_auto_delete=true", False, True),
    ],
)
def test_durability_of_queue_and_exchange_follows_the_options(query: str, durable: bool, auto_delete: bool) -> None:
    queue = default_queue(KeptConnection(f"{URL}?{query}").options, "openstack", "notifications.info")
    assert {queue.durable, queue.exchange.durable} == {durable}
    assert {queue.auto_delete, queue.exchange.auto_delete} == {auto_delete}


def test_mirrored_and_quorum_queues_exclude_each_other() -> None:
    options = KeptConnection(f"{URL}?rabbit_quorum_queue=true&rabbit_ha_queues=true").options
    with pytest.raises(ValueError, match="exclude each other"):
        queue_arguments(options)


def test_unknown_option_is_refused() -> None:
    with pytest.raises(NoSuchOptError):
        KeptConnection(f"{URL}?colour=green")


def test_invalid_value_is_refused() -> None:
    with pytest.raises(ValueError, match="many"):
        KeptConnection(f"{URL}?heartbeat_rate=many")
