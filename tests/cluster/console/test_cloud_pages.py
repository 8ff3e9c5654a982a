"""The console's pages of compute nodes, servers and storage."""

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from cluster.models import ComputeNode, HostAggregate
from tests.builders import make_aggregate, make_node, make_pool, make_server, make_volume


@pytest.fixture
def browser(client: Client, reader: User) -> Client:
    client.force_login(reader)
    return client


def test_node_list_shows_capacity_and_usage(browser: Client) -> None:
    make_server("web-1", make_node("compute1", vcpus=16), vcpus=4)
    text = browser.get(reverse("cluster:nodes")).content.decode()
    assert "4 of 16 vCPU" in text
    assert 'width="250.00"' in text


def test_node_page_lists_current_and_incoming_servers(browser: Client) -> None:
    node, other = make_node("compute1"), make_node("compute2")
    make_server("here", node)
    make_server("coming", other, destination=node)
    make_server("elsewhere", other)
    text = browser.get(reverse("cluster:node", args=[node.uuid])).content.decode()
    assert "here" in text
    assert "coming" in text
    assert "elsewhere" not in text


def test_table_of_servers_on_the_page_of_a_node_has_the_classes_of_other_tables(browser: Client) -> None:
    node = make_node()
    make_server("web-1", node)
    pages = [reverse("cluster:node", args=[node.uuid]), reverse("cluster:servers")]
    page, listed = (re.findall('<table class="(.*?)"', browser.get(path).content.decode()) for path in pages)
    assert page == listed


def test_server_page_links_to_its_node(browser: Client) -> None:
    node = make_node()
    text = browser.get(reverse("cluster:server", args=[make_server("web-1", node).uuid])).content.decode()
    assert reverse("cluster:node", args=[node.uuid]) in text


def test_server_page_shows_a_server_without_a_node_as_not_scheduled(browser: Client) -> None:
    text = browser.get(reverse("cluster:server", args=[make_server("web-1").uuid])).content.decode()
    assert "not scheduled" in text


def test_empty_node_list_shows_instructions(browser: Client) -> None:
    assert "load_topology" in browser.get(reverse("cluster:nodes")).content.decode()


def test_filter_without_results_shows_a_message(browser: Client) -> None:
    make_server("web-1", make_node())
    assert "No results." in browser.get(reverse("cluster:servers"), {"name": "zzz"}).content.decode()


def test_node_and_server_lists_require_the_view_permission(client: Client, stranger: User) -> None:
    client.force_login(stranger)
    assert client.get(reverse("cluster:nodes")).status_code == 403
    assert client.get(reverse("cluster:servers")).status_code == 403


def test_node_page_shows_zone_aggregates_and_power_state(browser: Client) -> None:
    node = make_node("compute1", zone="az2", power_state="off")
    make_aggregate(1, "ssd", node)
    make_aggregate(2, "gone", node)
    HostAggregate.objects.filter(name="gone").soft_delete()
    for page in (reverse("cluster:nodes"), reverse("cluster:node", args=[node.uuid])):
        text = browser.get(page).content.decode()
        assert ("az2" in text, "ssd" in text, "gone" in text, "state-off" in text) == (True, True, False, True)
        assert "ggregates" in text


def test_page_of_a_failed_node_links_to_the_evacuation_audit(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    node = make_node("compute1", state="down", forced_down=True)
    page = reverse("cluster:node", args=[node.uuid])
    assert "Evacuate…" not in client.get(page).content.decode()
    make_server("web-1", node)
    text = client.get(page).content.decode()
    assert "service forced down" in text
    address = re.search(r'href="([^"]*failed_node=compute1)"', text)
    assert address
    form = client.get(unescape(address[1])).context["form"]
    assert form["strategy"].value() == "node_recovery"
    assert form["parameter-failed_node"].value() == "compute1"


def test_evacuation_link_requires_the_permission_to_create_audits(browser: Client) -> None:
    node = make_node("compute1", state="down")
    make_server("web-1", node)
    assert "Evacuate…" not in browser.get(reverse("cluster:node", args=[node.uuid])).content.decode()


def test_node_list_is_filtered_by_aggregate(browser: Client) -> None:
    make_aggregate(1, "ssd", make_node("compute1"))
    make_aggregate(2, "ssd-large", ComputeNode.objects.get())
    make_node("compute2")
    text = browser.get(reverse("cluster:nodes"), {"aggregate": "ssd"}).content.decode()
    assert (text.count(">compute1</a>"), "compute2" in text) == (1, False)


def test_pool_list_shows_used_and_provisioned_capacity(browser: Client) -> None:
    make_volume("data", make_pool("a@lvm#one", max_over_subscription_ratio=2.0), size=25)
    text = browser.get(reverse("cluster:pools")).content.decode()
    assert "25 of 100 GB" in text
    assert "25 of 200 GB" in text
    assert 'width="125.00"' in text
    assert f"{reverse('cluster:volumes')}?pool=a%40lvm%23one" in text


def test_volume_list_shows_migration_destination_and_attached_server(browser: Client) -> None:
    server = make_server("web-1", make_node())
    make_volume("data", make_pool("a@lvm#one"), destination=make_pool("b@lvm#one"), attached_to=[server])
    text = browser.get(reverse("cluster:volumes")).content.decode().replace("<wbr>", "")
    assert "<bdi>a@lvm#one</bdi> → <bdi>b@lvm#one</bdi>" in text
    assert reverse("cluster:server", args=[server.uuid]) in text


def test_server_attached_to_two_volumes_is_listed_once_per_volume(browser: Client) -> None:
    server = make_server("web-1", make_node())
    make_volume("data", attached_to=[server])
    make_volume("logs", attached_to=[server])
    assert browser.get(reverse("cluster:volumes")).content.decode().count("><bdi>web-1</bdi></a>") == 2


def test_volume_list_is_filtered_by_pool(browser: Client) -> None:
    make_volume("here", make_pool("a@lvm#one"))
    make_volume("elsewhere", make_pool("b@lvm#one"))
    text = browser.get(reverse("cluster:volumes"), {"pool": "a@lvm#one"}).content.decode()
    assert ("here" in text, "elsewhere" in text) == (True, False)


def test_server_page_shows_its_volumes(browser: Client) -> None:
    server = make_server("web-1", make_node(), flavor="small")
    make_volume("data", make_pool(), attached_to=[server])
    make_volume("other")
    text = browser.get(reverse("cluster:server", args=[server.uuid])).content.decode()
    assert ("data" in text, "other" in text, "small" in text) == (True, False, True)


def test_node_list_links_to_pools_and_volumes(browser: Client) -> None:
    text = browser.get(reverse("cluster:nodes")).content.decode()
    assert reverse("cluster:pools") in text
    assert reverse("cluster:volumes") in text
    assert 'aria-current="page"' in text


def test_pool_and_volume_lists_require_the_view_permission(client: Client, stranger: User) -> None:
    client.force_login(stranger)
    assert client.get(reverse("cluster:pools")).status_code == 403
    assert client.get(reverse("cluster:volumes")).status_code == 403


@pytest.mark.parametrize("size", [1, 20])
@pytest.mark.parametrize(("page", "queries"), [("nodes", 7), ("servers", 8), ("pools", 6), ("volumes", 7)])
def test_list_query_count_does_not_depend_on_the_number_of_rows(
    browser: Client, django_assert_num_queries: Any, page: str, queries: int, size: int
) -> None:
    for number in range(size):
        server = make_server(f"server-{number}", make_node(f"compute{number}"))
        make_aggregate(number, f"aggregate-{number}", server.node)
        make_volume(f"volume-{number}", make_pool(f"a@lvm#{number}"), attached_to=[server])
    with django_assert_num_queries(queries):
        browser.get(reverse(f"cluster:{page}"))
