"""The console's pages of policies."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from cluster.models import Policy, PolicyBinding
from tests.builders import make_cluster, make_policy

pytestmark = pytest.mark.django_db

SCALING = "senlin.policy.scaling-1.0"


@pytest.fixture
def browser(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def show(browser: Client, page: str, /, *arguments: Any, **query: Any) -> str:
    answer = browser.get(reverse(page, args=arguments), query)
    assert answer.status_code == 200
    return answer.content.decode()


def make_scaling(name: str = "grow") -> Policy:
    return make_policy(name, SCALING, spec={"event": "CLUSTER_SCALE_OUT"})


def test_policy_page_shows_properties_and_clusters(browser: Client) -> None:
    policy, cluster = make_scaling(), make_cluster("web")
    PolicyBinding.objects.create(cluster=cluster, policy=policy, priority=77, enabled=False)
    text = show(browser, "cluster:policy", policy.uuid)
    assert (SCALING in text, "CLUSTER_SCALE_OUT" in text, "best_effort" in text) == (True, True, True)
    assert reverse("clusters:detail", args=[cluster.uuid]) in text
    assert ("77" in text, '<td data-label="Enabled">no</td>' in text) == (True, True)


def test_policy_page_shows_that_the_policy_type_is_not_installed(browser: Client) -> None:
    policy = make_policy("old", "a type")
    assert "(not installed)" in show(browser, "cluster:policy", policy.uuid)


def test_policy_list_is_filtered_by_name(browser: Client) -> None:
    PolicyBinding.objects.create(cluster=make_cluster("web"), policy=make_scaling(), priority=1)
    make_scaling("other")
    text = show(browser, "cluster:policies", name="gro")
    assert (">grow<" in text, ">other<" in text) == (True, False)


def test_policy_is_created_from_a_json_document(browser: Client) -> None:
    assert "min_step" in show(browser, "cluster:new-policy", document="1")
    fields = {"name": "grow", "type": SCALING, "spec": '{"event": "CLUSTER_SCALE_OUT"}'}
    answer = browser.post(reverse("cluster:new-policy"), fields)
    policy = Policy.objects.get()
    assert answer["Location"] == reverse("cluster:policy", args=[policy.uuid])
    assert (policy.name, policy.type, policy.spec) == ("grow", SCALING, {"event": "CLUSTER_SCALE_OUT"})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": ""}, "This field is required."),
        ({"type": "a type"}, "is not one of the available choices."),
        ({"spec": "{\n  x"}, "Line 2, column 3"),
        ({"spec": '{"event": "LUNCH"}'}, "LUNCH"),
        ({"spec": "[]"}, "is not of type"),
        ({"name": "Taken"}, "another policy is called Taken."),
    ],
)
def test_invalid_policy_is_refused_with_a_form_error(browser: Client, changes: dict[str, str], words: str) -> None:
    make_scaling("taken")
    fields = {"name": "grow", "type": SCALING, "spec": '{"event": "CLUSTER_SCALE_OUT"}'} | changes
    answer = browser.post(reverse("cluster:new-policy"), fields)
    assert (answer.status_code, words in answer.content.decode()) == (200, True), answer.content.decode()
    assert Policy.objects.count() == 1


def test_new_policy_page_links_to_the_form_of_each_policy_type(browser: Client) -> None:
    assert f'href="?type={SCALING}"' in show(browser, "cluster:new-policy")


def test_form_describes_the_policy_and_its_properties_in_the_language_of_the_user(browser: Client) -> None:
    address = reverse("cluster:new-policy", query={"type": "senlin.policy.batch-1.0"})
    text = browser.get(address, headers={"Accept-Language": "de"}).content.decode()
    assert "Aktualisiert die Knoten eines Clusters in Gruppen." in text
    assert "Die Zeit zwischen zwei Gruppen in Sekunden." in text


def test_properties_of_a_policy_type_are_form_fields_with_help_and_ranges(browser: Client) -> None:
    text = show(browser, "cluster:new-policy", type=SCALING)
    assert 'name="parameter-adjustment.cooldown"' in text
    assert 'max="31536000"' in text
    assert "The time after a scaling in which another one is refused, in seconds." in text


def create(browser: Client, type: str, **properties: str) -> HttpResponse:
    fields = {f"parameter-{name}": value for name, value in properties.items()}
    return browser.post(reverse("cluster:new-policy"), {"name": "one", "type": type, **fields})


def test_policy_created_from_fields_omits_defaults(browser: Client) -> None:
    properties = {"event": "CLUSTER_SCALE_IN", "adjustment.number": "2", "adjustment.min_step": "1"}
    create(browser, SCALING, **properties)
    assert Policy.objects.get().spec == {"event": "CLUSTER_SCALE_IN", "adjustment": {"number": 2}}


def test_list_of_objects_is_entered_in_rows(browser: Client) -> None:
    create(
        browser,
        "senlin.policy.zone_placement-1.0",
        **{"zones.0.name": "az1", "zones.0.weight": "10", "zones.2.name": "az2"},
        **{"zones.1.name": "", "zones.1.weight": "", "zones.2.weight": ""},
    )
    assert Policy.objects.get().spec == {"zones": [{"name": "az1", "weight": 10}, {"name": "az2"}]}


def test_refused_property_is_reported_at_its_field(browser: Client) -> None:
    text = create(browser, SCALING, event="CLUSTER_SCALE_IN", **{"adjustment.number": "1.5"}).content.decode()
    assert 'id="error_1_id_parameter-adjustment.number"' in text
    assert "Must be a whole number for CHANGE_IN_CAPACITY." in text


def test_only_a_policy_without_clusters_is_deleted(browser: Client) -> None:
    policy, used = make_scaling(), make_scaling("used")
    PolicyBinding.objects.create(cluster=make_cluster("web"), policy=used, priority=1)
    browser.post(reverse("cluster:delete-policy", args=[policy.uuid]))
    answer = browser.post(reverse("cluster:delete-policy", args=[used.uuid]), follow=True)
    assert "is in use by 1 cluster" in answer.content.decode()
    assert list(Policy.objects.present()) == [used]


@pytest.mark.parametrize(
    ("clusters", "explanation"), [(0, ""), (1, "Attached to 1 cluster: cannot"), (2, "Attached to 2 clusters: cannot")]
)
def test_deletion_is_offered_only_for_a_policy_without_clusters(
    browser: Client, clusters: int, explanation: str
) -> None:
    policy = make_scaling()
    for number in range(clusters):
        PolicyBinding.objects.create(cluster=make_cluster(f"web-{number}"), policy=policy, priority=1)
    text = show(browser, "cluster:policy", policy.uuid)
    assert (reverse("cluster:delete-policy", args=[policy.uuid]) in text) is not bool(clusters)
    assert ("Attached to" in text, explanation in text) == (bool(clusters), True)


def test_policy_page_query_count_does_not_depend_on_the_number_of_clusters(browser: Client) -> None:
    policy, counts = make_scaling(), []
    for number in range(3):
        PolicyBinding.objects.create(cluster=make_cluster(f"web-{number}"), policy=policy, priority=1)
        with CaptureQueriesContext(connection) as queries:
            show(browser, "cluster:policy", policy.uuid)
        counts.append(len(queries))
    assert counts[1] == counts[2]


@pytest.mark.parametrize("page", ["cluster:new-policy", "cluster:delete-policy"])
def test_reader_may_read_and_not_change_policies(client: Client, reader: User, page: str) -> None:
    client.force_login(reader)
    policy = make_scaling()
    where = reverse(page, args=[policy.uuid] if page == "cluster:delete-policy" else [])
    assert where not in show(client, "cluster:policies") + show(client, "cluster:policy", policy.uuid)
    assert client.post(where).status_code == 403
    assert Policy.objects.present().exists()
