"""The console's pages of the cloud."""

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


def test_a_node_shows_how_much_of_it_is_used(browser: Client) -> None:
    make_server("web-1", make_node("compute1", vcpus=16), vcpus=4)
    text = browser.get(reverse("cluster:nodes")).content.decode()
    assert "4 of 16 vCPU" in text
    assert 'width="250.00"' in text


def test_a_nodes_page_lists_its_servers_and_those_on_their_way(browser: Client) -> None:
    node, other = make_node("compute1"), make_node("compute2")
    make_server("here", node)
    make_server("coming", other, destination=node)
    make_server("elsewhere", other)
    text = browser.get(reverse("cluster:node", args=[node.uuid])).content.decode()
    assert "here" in text
    assert "coming" in text
    assert "elsewhere" not in text


def test_a_server_links_to_its_node(browser: Client) -> None:
    node = make_node()
    text = browser.get(reverse("cluster:server", args=[make_server("web-1", node).uuid])).content.decode()
    assert reverse("cluster:node", args=[node.uuid]) in text


def test_a_server_that_was_scheduled_nowhere_says_so(browser: Client) -> None:
    text = browser.get(reverse("cluster:server", args=[make_server("web-1").uuid])).content.decode()
    assert "not scheduled" in text


def test_an_empty_cloud_says_how_to_fill_it(browser: Client) -> None:
    assert "load_topology" in browser.get(reverse("cluster:nodes")).content.decode()


def test_a_filter_that_finds_nothing_offers_the_way_back(browser: Client) -> None:
    make_server("web-1", make_node())
    assert "No results." in browser.get(reverse("cluster:servers"), {"name": "zzz"}).content.decode()


def test_nobody_sees_the_cloud_without_the_right_to(client: Client, stranger: User) -> None:
    client.force_login(stranger)
    assert client.get(reverse("cluster:nodes")).status_code == 403
    assert client.get(reverse("cluster:servers")).status_code == 403


def test_a_node_tells_its_zone_its_aggregates_and_its_power_state(browser: Client) -> None:
    node = make_node("compute1", zone="az2", power_state="off")
    make_aggregate(1, "ssd", node)
    make_aggregate(2, "gone", node)
    HostAggregate.objects.filter(name="gone").soft_delete()
    for page in (reverse("cluster:nodes"), reverse("cluster:node", args=[node.uuid])):
        text = browser.get(page).content.decode()
        assert ("az2" in text, "ssd" in text, "gone" in text, "state-off" in text) == (True, True, False, True)
        assert "ggregates" in text


def test_the_page_of_a_node_that_is_down_leads_to_its_evacuation(client: Client, cloud_admin: User) -> None:
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


def test_who_may_create_no_audits_is_offered_no_evacuation(browser: Client) -> None:
    node = make_node("compute1", state="down")
    make_server("web-1", node)
    assert "Evacuate…" not in browser.get(reverse("cluster:node", args=[node.uuid])).content.decode()


def test_nodes_are_found_by_their_aggregate(browser: Client) -> None:
    make_aggregate(1, "ssd", make_node("compute1"))
    make_aggregate(2, "ssd-large", ComputeNode.objects.get())
    make_node("compute2")
    text = browser.get(reverse("cluster:nodes"), {"aggregate": "ssd"}).content.decode()
    assert (text.count(">compute1</a>"), "compute2" in text) == (1, False)


def test_a_pool_shows_how_much_of_it_is_used_and_promised(browser: Client) -> None:
    make_volume("data", make_pool("a@lvm#one", max_over_subscription_ratio=2.0), size=25)
    text = browser.get(reverse("cluster:pools")).content.decode()
    assert "25 of 100 GB" in text
    assert "25 of 200 GB" in text
    assert 'width="125.00"' in text
    assert f"{reverse('cluster:volumes')}?pool=a%40lvm%23one" in text


def test_a_volume_tells_where_it_is_going_and_what_it_is_attached_to(browser: Client) -> None:
    server = make_server("web-1", make_node())
    make_volume("data", make_pool("a@lvm#one"), destination=make_pool("b@lvm#one"), attached_to=[server])
    text = browser.get(reverse("cluster:volumes")).content.decode()
    assert "a@lvm#one → b@lvm#one" in text
    assert reverse("cluster:server", args=[server.uuid]) in text


def test_a_server_with_two_volumes_stands_once_at_each(browser: Client) -> None:
    server = make_server("web-1", make_node())
    make_volume("data", attached_to=[server])
    make_volume("logs", attached_to=[server])
    assert browser.get(reverse("cluster:volumes")).content.decode().count(">web-1</a>") == 2


def test_volumes_are_found_by_their_pool(browser: Client) -> None:
    make_volume("here", make_pool("a@lvm#one"))
    make_volume("elsewhere", make_pool("b@lvm#one"))
    text = browser.get(reverse("cluster:volumes"), {"pool": "a@lvm#one"}).content.decode()
    assert ("here" in text, "elsewhere" in text) == (True, False)


def test_a_server_shows_its_volumes(browser: Client) -> None:
    server = make_server("web-1", make_node(), flavor="small")
    make_volume("data", make_pool(), attached_to=[server])
    make_volume("other")
    text = browser.get(reverse("cluster:server", args=[server.uuid])).content.decode()
    assert ("data" in text, "other" in text, "small" in text) == (True, False, True)


def test_pools_and_volumes_are_part_of_the_nodes_area(browser: Client) -> None:
    text = browser.get(reverse("cluster:nodes")).content.decode()
    assert reverse("cluster:pools") in text
    assert reverse("cluster:volumes") in text
    assert 'aria-current="page"' in text


def test_nobody_sees_the_storage_without_the_right_to(client: Client, stranger: User) -> None:
    client.force_login(stranger)
    assert client.get(reverse("cluster:pools")).status_code == 403
    assert client.get(reverse("cluster:volumes")).status_code == 403


@pytest.mark.parametrize("size", [1, 20])
@pytest.mark.parametrize(("page", "queries"), [("nodes", 7), ("servers", 8), ("pools", 6), ("volumes", 7)])
def test_the_lists_take_the_same_queries_whatever_their_size(
    browser: Client, django_assert_num_queries: Any, page: str, queries: int, size: int
) -> None:
    for number in range(size):
        server = make_server(f"server-{number}", make_node(f"compute{number}"))
        make_aggregate(number, f"aggregate-{number}", server.node)
        make_volume(f"volume-{number}", make_pool(f"a@lvm#{number}"), attached_to=[server])
    with django_assert_num_queries(queries):
        browser.get(reverse(f"cluster:{page}"))
