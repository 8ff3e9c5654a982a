"""The console's pages of policies."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
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


def test_a_policy_shows_what_it_says_and_which_clusters_have_it(browser: Client) -> None:
    policy, cluster = make_scaling(), make_cluster("web")
    PolicyBinding.objects.create(cluster=cluster, policy=policy, priority=77, enabled=False)
    text = show(browser, "cluster:policy", policy.uuid)
    assert (SCALING in text, "CLUSTER_SCALE_OUT" in text, "best_effort" in text) == (True, True, True)
    assert reverse("clusters:detail", args=[cluster.uuid]) in text
    assert ("77" in text, '<td data-label="Enabled">no</td>' in text) == (True, True)


def test_a_policy_whose_type_is_gone_says_so(browser: Client) -> None:
    policy = make_policy("old", "a type")
    assert "(not installed)" in show(browser, "cluster:policy", policy.uuid)


def test_a_list_is_narrowed_and_counts_clusters(browser: Client) -> None:
    PolicyBinding.objects.create(cluster=make_cluster("web"), policy=make_scaling(), priority=1)
    make_scaling("other")
    text = show(browser, "cluster:policies", name="gro")
    assert (">grow<" in text, ">other<" in text) == (True, False)


def test_a_policy_is_created_by_a_form_that_shows_what_there_is(browser: Client) -> None:
    assert "min_step" in show(browser, "cluster:new-policy")
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
        ({"spec": "{"}, "Enter valid JSON."),
        ({"spec": '{"event": "LUNCH"}'}, "LUNCH"),
        ({"spec": "[]"}, "is not of type"),
        ({"name": "Taken"}, "another policy is called Taken."),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_in_the_form(
    browser: Client, changes: dict[str, str], words: str
) -> None:
    make_scaling("taken")
    fields = {"name": "grow", "type": SCALING, "spec": '{"event": "CLUSTER_SCALE_OUT"}'} | changes
    answer = browser.post(reverse("cluster:new-policy"), fields)
    assert (answer.status_code, words in answer.content.decode()) == (200, True), answer.content.decode()
    assert Policy.objects.count() == 1


def test_a_policy_that_no_cluster_has_is_deleted(browser: Client) -> None:
    policy, used = make_scaling(), make_scaling("used")
    PolicyBinding.objects.create(cluster=make_cluster("web"), policy=used, priority=1)
    browser.post(reverse("cluster:delete-policy", args=[policy.uuid]))
    answer = browser.post(reverse("cluster:delete-policy", args=[used.uuid]), follow=True)
    assert "is in use by 1 cluster" in answer.content.decode()
    assert list(Policy.objects.present()) == [used]


@pytest.mark.parametrize("page", ["cluster:new-policy", "cluster:delete-policy"])
def test_readers_may_look_and_do_nothing(client: Client, reader: User, page: str) -> None:
    client.force_login(reader)
    policy = make_scaling()
    where = reverse(page, args=[policy.uuid] if page == "cluster:delete-policy" else [])
    assert where not in show(client, "cluster:policies") + show(client, "cluster:policy", policy.uuid)
    assert client.post(where).status_code == 403
    assert Policy.objects.present().exists()
