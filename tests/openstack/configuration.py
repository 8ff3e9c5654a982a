"""The configuration files of the services of the control plane."""

import configparser
import json
import os
from collections.abc import Mapping
from pathlib import Path

from tests.broker import BROKER_URL

PASSWORD = "a password of the control plane"
FIRST_PORT = int(os.environ.get("WATCHER_TEST_OPENSTACK_PORT", "15310"))
# One port for each service, from `FIRST_PORT` on.
SERVICES = ("keystone", "placement", "glance", "nova-api", "neutron", "mariadb", "cinder-api")
PORTS = {name: FIRST_PORT + place for place, name in enumerate(SERVICES)}
URLS = {name: f"http://127.0.0.1:{port}" for name, port in PORTS.items()}
AUTH_URL = f"{URLS['keystone']}/v3"
DATABASES = ("keystone", "placement", "glance", "nova", "nova_api", "nova_cell0", "neutron", "cinder")
# The availability zone of each compute node that is in one of its own, by the name of the node.
COMPUTE_NODES = {"cmp1": None, "cmp2": None, "cmp3": "az2"}
# The number of items in one page of a list of Nova.
PAGE = 3
VCPUS, MEMORY, DISK = 16, 32768, 1000
# The backends of Cinder, and the capacity of the pool of each, in gigabytes.
BACKENDS, CAPACITY = ("first", "second"), 100
# In seconds, for answers of one service to another.
RPC_TIMEOUT = 600
# The exchanges and topics of notifications are their own on a broker that others use.
EXCHANGES = {"nova": "watcher-test-nova", "cinder": "watcher-test-cinder"}
TOPICS = {"nova": "watcher-test-nova-versioned", "cinder": "watcher-test-cinder-notifications"}

Sections = Mapping[str, Mapping[str, object]]


def database(name: str) -> dict[str, object]:
    url = f"mysql+pymysql://root@127.0.0.1:{PORTS['mariadb']}/{name}"
    return {"connection": url, "max_pool_size": 4, "max_overflow": 6}


def credentials(user: str) -> dict[str, object]:
    return {
        "auth_url": AUTH_URL,
        "auth_type": "password",
        "username": user,
        "password": PASSWORD,
        "project_name": "service",
        "user_domain_id": "default",
        "project_domain_id": "default",
    }


def token_check(user: str) -> dict[str, object]:
    roles = {"service_token_roles": "service", "service_token_roles_required": True}
    return {**credentials(user), "www_authenticate_uri": AUTH_URL, **roles}


def keystone(folder: Path) -> Sections:
    return {
        "DEFAULT": {"log_file": ""},
        "database": database("keystone"),
        "token": {"provider": "fernet"},
        "fernet_tokens": {"key_repository": folder / "keys" / "fernet"},
        "credential": {"key_repository": folder / "keys" / "credential"},
        # In the memory of its one process.
        "cache": {"enabled": True, "backend": "dogpile.cache.memory"},
        # The lowest cost that bcrypt has: each test process authenticates.
        "identity": {"password_hash_rounds": 4},
    }


def placement(folder: Path) -> Sections:
    return {
        "placement_database": database("placement"),
        "api": {"auth_strategy": "keystone"},
        "keystone_authtoken": token_check("placement"),
    }


def glance(folder: Path) -> Sections:
    paste = folder / "environment" / "etc" / "glance" / "glance-api-paste.ini"
    stores = {
        f"{name}": {"filesystem_store_datadir": folder / "images" / name}
        for name in ("file", "os_glance_tasks_store", "os_glance_staging_store")
    }
    return {
        "DEFAULT": {"enabled_backends": "file:file", "workers": 1},
        "glance_store": {"default_backend": "file"},
        **stores,
        "database": database("glance"),
        "paste_deploy": {"flavor": "keystone", "config_file": paste},
        "keystone_authtoken": token_check("glance"),
    }


def nova(folder: Path) -> Sections:
    own = {**credentials("nova"), "region_name": "RegionOne"}
    return {
        "DEFAULT": {
            "transport_url": BROKER_URL.replace("amqp://", "rabbit://", 1).removesuffix("/"),
            # Its queues are its own on a broker that others use, and do not outlive it.
            "control_exchange": EXCHANGES["nova"],
            "state_path": folder / "state" / "api",
            "my_ip": "127.0.0.1",
            "use_cow_images": False,
            # On a busy machine, services are slow to report and to answer, but not down. Tests that need one that is
            # down change its heartbeat.
            "service_down_time": RPC_TIMEOUT,
            "report_interval": 3,
            "rpc_response_timeout": RPC_TIMEOUT,
            # Otherwise the scheduler looks for new hosts after a random time of up to a minute.
            "periodic_fuzzy_delay": 0,
        },
        "oslo_messaging_rabbit": {"amqp_auto_delete": True},
        "database": database("nova"),
        "api_database": database("nova_api"),
        "api": {"auth_strategy": "keystone", "max_limit": PAGE},
        "conductor": {"workers": 1},
        "scheduler": {"workers": 1, "discover_hosts_in_cells_interval": 5},
        "filter_scheduler": {"track_instance_changes": False},
        # Without limits, except for quotas that a test sets for a project.
        "quota": dict.fromkeys(("instances", "cores", "ram", "server_groups", "server_group_members"), -1),
        "oslo_concurrency": {"lock_path": folder / "state" / "locks"},
        "notifications": {
            "notification_format": "versioned",
            "notify_on_state_change": "vm_and_task_state",
            "versioned_notifications_topics": TOPICS["nova"],
        },
        "oslo_messaging_notifications": {"driver": "messagingv2"},
        "glance": {"service_type": "image", "endpoint_override": URLS["glance"]},
        "neutron": {**own, "endpoint_override": URLS["neutron"]},
        "placement": own,
        "service_user": {**credentials("nova"), "send_service_user_token": True},
        "keystone_authtoken": token_check("nova"),
        "vnc": {"enabled": False},
        "spice": {"enabled": False},
    }


def neutron(folder: Path) -> Sections:
    return {
        "DEFAULT": {
            "core_plugin": "ml2",
            "service_plugins": "",
            "auth_strategy": "keystone",
            "transport_url": BROKER_URL.replace("amqp://", "rabbit://", 1).removesuffix("/"),
            "control_exchange": "watcher-test-neutron",
            "state_path": folder / "state" / "neutron",
            "rpc_response_timeout": RPC_TIMEOUT,
            # There are no agents that could report that a port is active, or serve DHCP.
            "notify_nova_on_port_status_changes": False,
            "dhcp_agent_notification": False,
        },
        "oslo_messaging_rabbit": {"amqp_auto_delete": True},
        "oslo_messaging_notifications": {"driver": "noop"},
        "oslo_concurrency": {"lock_path": folder / "state" / "locks"},
        "database": database("neutron"),
        "nova": {**credentials("nova"), "region_name": "RegionOne"},
        "placement": {**credentials("nova"), "region_name": "RegionOne"},
        "keystone_authtoken": token_check("neutron"),
    }


def ml2() -> Sections:
    """Return the options of Neutron's plug-in, which binds ports to the agents that `ControlPlane.prepare` enters."""
    return {
        "ml2": {
            "type_drivers": "local",
            "tenant_network_types": "local",
            "mechanism_drivers": "openvswitch",
            "extension_drivers": "port_security",
        }
    }


def compute_node(folder: Path, host: str) -> Sections:
    state = folder / "state" / host
    return {
        "DEFAULT": {
            "host": host,
            "state_path": state,
            "instances_path": state / "instances",
            # The one of Nova's own fake drivers whose live migrations can be aborted.
            "compute_driver": "fake.FakeLiveMigrateDriver",
            "reserved_host_memory_mb": 512,
            "resume_guests_state_on_host_boot": True,
            "sync_power_state_interval": -1,
            "heal_instance_info_cache_interval": -1,
            "running_deleted_instance_action": "noop",
            "update_resources_interval": 30,
            "initial_cpu_allocation_ratio": 4.0,
            "initial_ram_allocation_ratio": 1.5,
            "initial_disk_allocation_ratio": 1.0,
        },
        "oslo_concurrency": {"lock_path": state / "locks"},
        # There is no agent that plugs the ports of a server at its destination.
        "compute": {"shutdown_retry_interval": 1, "live_migration_wait_for_vif_plug": False},
    }


def cinder(folder: Path) -> Sections:
    state = folder / "state" / "cinder"
    backends = {
        name: {"volume_driver": "cinder.tests.fake_driver.FakeLoggingVolumeDriver", "volume_backend_name": name}
        for name in BACKENDS
    }
    return {
        "DEFAULT": {
            "transport_url": BROKER_URL.replace("amqp://", "rabbit://", 1).removesuffix("/"),
            "control_exchange": EXCHANGES["cinder"],
            "auth_strategy": "keystone",
            "api_paste_config": folder / "environment" / "etc" / "cinder" / "api-paste.ini",
            "state_path": state,
            "my_ip": "127.0.0.1",
            "host": "volumes",
            "enabled_backends": ",".join(BACKENDS),
            "osapi_volume_listen": "127.0.0.1",
            "osapi_volume_listen_port": PORTS["cinder-api"],
            "osapi_volume_workers": 1,
            "service_down_time": RPC_TIMEOUT,
            "rpc_response_timeout": RPC_TIMEOUT,
        },
        "oslo_messaging_rabbit": {"amqp_auto_delete": True},
        "oslo_messaging_notifications": {"driver": "messagingv2", "topics": TOPICS["cinder"]},
        "oslo_concurrency": {"lock_path": state / "locks"},
        "coordination": {"backend_url": f"file://{state}"},
        "database": database("cinder"),
        "keystone_authtoken": token_check("cinder"),
        **backends,
    }


def clouds() -> str:
    """Return a clouds.yaml with the service's user, an administrator and a member of another project."""

    def entry(user: str, project: str) -> dict[str, object]:
        auth = {
            "auth_url": AUTH_URL,
            "username": user,
            "password": PASSWORD,
            "project_name": project,
            "user_domain_name": "Default",
            "project_domain_name": "Default",
        }
        return {"region_name": "RegionOne", "auth": auth}

    people = {
        "service": entry("watcher", "service"),
        "admin": entry("admin", "admin"),
        "member": entry("member", "demo"),
    }
    return json.dumps({"clouds": people}, indent=2)


def write(path: Path, sections: Sections) -> None:
    file = configparser.ConfigParser(interpolation=None, default_section="")
    file.read_dict({name: {key: str(value) for key, value in values.items()} for name, values in sections.items()})
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as stream:
        file.write(stream)


def write_all(folder: Path) -> None:
    """Write every file that a service of the control plane reads, and make the folders that they name."""
    files = folder / "configuration"
    write(files / "keystone" / "keystone.conf", keystone(folder))
    write(files / "placement" / "placement.conf", placement(folder))
    write(files / "glance" / "glance-api.conf", glance(folder))
    write(files / "nova" / "nova.conf", nova(folder))
    write(files / "cinder" / "cinder.conf", cinder(folder))
    for host in COMPUTE_NODES:
        write(files / f"{host}.conf", compute_node(folder, host))
        (folder / "state" / host / "instances").mkdir(parents=True, exist_ok=True)
    write(files / "neutron" / "neutron.conf", neutron(folder))
    write(files / "neutron" / "plugins" / "ml2" / "ml2_conf.ini", ml2())
    environment = folder / "environment" / "etc"
    for name in ("nova/api-paste.ini", "glance/glance-api-paste.ini", "neutron/api-paste.ini"):
        source = environment / name
        (files / source.parent.name / source.name).write_text(source.read_text())
    for name in ("file", "os_glance_tasks_store", "os_glance_staging_store"):
        (folder / "images" / name).mkdir(parents=True, exist_ok=True)
    for name in ("api", "cinder", "neutron"):
        (folder / "state" / name).mkdir(parents=True, exist_ok=True)
    (folder / "clouds.yaml").write_text(clouds())
