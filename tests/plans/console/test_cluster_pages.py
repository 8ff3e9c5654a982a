"""Console pages of clusters, and operations on clusters and nodes."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from actions.models import Action
from cluster.models import Cluster, Node, PolicyBinding
from plans.models import ActionPlan
from tests.builders import make_cluster, make_member, make_node, make_policy, make_profile
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db

SCALING = "senlin.policy.scaling-1.0"
VERBS = ["scale-out", "scale-in", "resize", "check", "recover", "change", "delete", "attach"]
NODE_VERBS = ["check-node", "recover-node", "delete-node"]


@pytest.fixture
def browser(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def show(browser: Client, page: str, /, *arguments: Any, **query: Any) -> str:
    answer = browser.get(reverse(page, args=arguments), query)
    assert answer.status_code == 200
    return answer.content.decode().replace("<wbr>", "")


def bind(cluster: Cluster, name: str = "grow", **columns: Any) -> PolicyBinding:
    policy = make_policy(name, SCALING, spec={"event": "CLUSTER_SCALE_OUT"})
    return PolicyBinding.objects.create(cluster=cluster, policy=policy, priority=100, **columns)


def test_cluster_list_shows_the_number_of_nodes_and_its_bounds(browser: Client) -> None:
    make_cluster("web", size=3, min_size=1, max_size=5)
    make_cluster("db", status="ERROR", desired_capacity=2)
    text = show(browser, "clusters:list")
    assert ("3 of 3 (min 1, max 5)" in text, "0 of 2 (min 0, max unlimited)" in text) == (True, True)
    text = show(browser, "clusters:list", status="ERROR")
    assert (">web<" in text, ">db<" in text) == (False, True)


def test_cluster_page_shows_members_policies_and_the_last_operation(browser: Client) -> None:
    make_node()
    cluster = make_cluster("web", size=1, metadata={"team": "shop"})
    bind(cluster)
    browser.post(reverse("clusters:scale-out", args=[cluster.uuid]), {"count": "1"})
    run_waiting()
    text = show(browser, "clusters:detail", cluster.uuid)
    action, plan = Action.objects.get(derived_from=None), ActionPlan.objects.get()
    for page, record in (("actions:detail", action), ("plans:detail", plan)):
        assert reverse(page, args=[record.uuid]) in text
    for node in Node.objects.all():
        assert reverse("cluster:member", args=[node.uuid]) in text
    assert ("grow" in text, SCALING in text, "shop" in text, "2 of 2" in text) == (True, True, True, True)


def test_locked_cluster_page_names_the_lock_holder_and_updates_itself(browser: Client) -> None:
    cluster = make_cluster("web")
    assert "Locked by" not in show(browser, "clusters:detail", cluster.uuid)
    plan = ActionPlan.objects.create()
    action = Action.objects.create(action_plan=plan, action_type="CLUSTER_CHECK")
    cluster.locks.create(action=action.uuid, is_exclusive=True)
    text = show(browser, "clusters:detail", cluster.uuid)
    assert ("Locked by" in text, action.name in text, 'hx-trigger="every 2s"' in text) == (True, True, True)


def test_cluster_page_updates_itself_as_soon_as_an_operation_is_requested(browser: Client) -> None:
    cluster = make_cluster("web")
    where, poll = reverse("clusters:scale-out", args=[cluster.uuid]), 'hx-trigger="every 2s"'
    browser.post(where, {"count": "1", "plan_only": "on"})
    assert poll not in show(browser, "clusters:detail", cluster.uuid)
    browser.post(where, {"count": "1"})
    assert poll in show(browser, "clusters:detail", cluster.uuid)


@pytest.mark.parametrize("verb", VERBS)
def test_each_operation_on_a_cluster_has_a_form(browser: Client, verb: str) -> None:
    cluster = make_cluster("web", size=1)
    where = reverse(f"clusters:{verb}", args=[cluster.uuid])
    assert where in show(browser, "clusters:detail", cluster.uuid)
    assert "Create the action plan for review" in browser.get(where).content.decode()


@pytest.mark.parametrize("verb", NODE_VERBS)
def test_each_operation_on_a_node_has_a_form(browser: Client, verb: str) -> None:
    node = make_member(status="ACTIVE")
    where = reverse(f"clusters:{verb}", args=[node.uuid])
    assert where in show(browser, "cluster:member", node.uuid)
    assert "Create the action plan for review" in browser.get(where).content.decode()


@pytest.mark.parametrize("verb", ["enable", "disable", "detach"])
def test_each_operation_on_a_policy_of_a_cluster_has_a_form(browser: Client, verb: str) -> None:
    binding = bind(make_cluster("web"), enabled=verb != "enable")
    where = reverse(f"clusters:{verb}", args=[binding.uuid])
    assert where in show(browser, "clusters:detail", binding.cluster.uuid)
    assert "Create the action plan for review" in browser.get(where).content.decode()


def test_requested_operation_starts_immediately_with_a_link_to_its_plan(browser: Client) -> None:
    cluster = make_cluster("web")
    answer = browser.post(reverse("clusters:scale-out", args=[cluster.uuid]), {"count": "2"}, follow=True)
    action = Action.objects.get()
    assert (action.action_type, action.input_parameters["count"]) == ("CLUSTER_SCALE_OUT", 2)
    assert action.action_plan.state == "PENDING"
    assert answer.redirect_chain == [(reverse("clusters:detail", args=[cluster.uuid]), 302)]
    assert f'href="{reverse("plans:detail", args=[action.action_plan.uuid])}"' in answer.content.decode()


def test_plan_only_operation_redirects_to_its_recommended_plan(browser: Client) -> None:
    cluster = make_cluster("web")
    where = reverse("clusters:scale-out", args=[cluster.uuid])
    answer = browser.post(where, {"count": "2", "plan_only": "on"})
    plan = ActionPlan.objects.get()
    assert (plan.state, plan.actions.count()) == ("RECOMMENDED", 3)
    assert answer["Location"] == reverse("plans:detail", args=[plan.uuid])


def test_deletion_redirects_to_its_plan(browser: Client) -> None:
    cluster, node = make_cluster("web", size=1), make_member(status="ACTIVE")
    for verb, record, fields in (("delete", cluster, {"force": "on"}), ("delete-node", node, {})):
        answer = browser.post(reverse(f"clusters:{verb}", args=[record.uuid]), fields)
        assert answer["Location"] == reverse("plans:detail", args=[ActionPlan.objects.latest("pk").uuid])


def test_deletion_of_a_cluster_with_nodes_must_be_confirmed(browser: Client) -> None:
    cluster = make_cluster("web", size=1)
    text = show(browser, "clusters:delete", cluster.uuid)
    assert "Confirm: the nodes and their servers are also deleted" in text


@pytest.mark.parametrize("page", ["clusters:create", "clusters:change"])
def test_timeout_of_a_cluster_names_its_unit(browser: Client, page: str) -> None:
    arguments = [make_cluster("web").uuid] if page == "clusters:change" else []
    assert "Timeout (seconds)" in show(browser, page, *arguments)


@pytest.mark.parametrize(
    ("verb", "fields", "words"),
    [
        ("scale-out", {"count": "9"}, "greater than the cluster&#x27;s max_size (5)."),
        ("scale-out", {"count": "0"}, "greater than or equal to 1"),
        ("resize", {}, "Is required unless min_size or max_size is given."),
        ("resize", {"adjustment_type": "EXACT_CAPACITY", "number": "7"}, "The target capacity (7) is greater"),
        ("change", {"name": "web", "timeout": "0"}, "This field is required."),
        ("attach", {}, "This field is required."),
        ("delete", {}, "This field is required."),
    ],
)
def test_invalid_operation_is_refused_in_its_form(
    browser: Client, verb: str, fields: dict[str, str], words: str
) -> None:
    cluster = make_cluster("web", size=1, max_size=5)
    answer = browser.post(reverse(f"clusters:{verb}", args=[cluster.uuid]), fields)
    assert (answer.status_code, words in answer.content.decode()) == (200, True), answer.content.decode()
    assert not ActionPlan.objects.exists()


def test_cluster_is_created_by_a_form(browser: Client) -> None:
    profile = make_profile("small web")
    fields = {"name": "web", "profile": str(profile.uuid), "desired_capacity": "2", "max_size": "3"}
    answer = browser.post(reverse("clusters:create"), fields)
    cluster = Cluster.objects.get()
    assert answer["Location"] == reverse("clusters:detail", args=[cluster.uuid])
    assert (cluster.name, cluster.desired_capacity, cluster.max_size) == ("web", 2, 3)
    assert Action.objects.get().action_type == "CLUSTER_CREATE"


def test_invalid_bounds_of_a_new_cluster_are_refused_next_to_the_field(browser: Client) -> None:
    profile = make_profile("small web")
    fields = {"name": "web", "profile": str(profile.uuid), "min_size": "4", "max_size": "3"}
    text = browser.post(reverse("clusters:create"), fields).content.decode()
    assert ("4 is above the max_size 3." in text, 'value="web"' in text) == (True, True)
    assert not Cluster.objects.exists()


# Permissions


@pytest.mark.parametrize("verb", VERBS)
def test_readers_see_no_cluster_buttons_and_are_refused(client: Client, reader: User, verb: str) -> None:
    client.force_login(reader)
    cluster = bind(make_cluster("web", size=1)).cluster
    where = reverse(f"clusters:{verb}", args=[cluster.uuid])
    assert where not in show(client, "clusters:detail", cluster.uuid)
    assert client.post(where, {"count": "1"}).status_code == 403
    assert client.get(reverse("clusters:create")).status_code == 403
    assert reverse("clusters:create") not in show(client, "clusters:list")
    assert not ActionPlan.objects.exists()


@pytest.mark.parametrize("verb", ["disable", "detach"])
def test_readers_cannot_change_policies_of_a_cluster(client: Client, reader: User, verb: str) -> None:
    client.force_login(reader)
    binding = bind(make_cluster("web"))
    where = reverse(f"clusters:{verb}", args=[binding.uuid])
    assert where not in show(client, "clusters:detail", binding.cluster.uuid)
    assert client.post(where).status_code == 403


def test_policies_of_a_cluster_have_no_column_of_operations_for_readers(client: Client, reader: User) -> None:
    client.force_login(reader)
    cluster = make_cluster("web")
    bind(cluster)
    page = show(client, "clusters:detail", cluster.uuid)
    assert SCALING in page
    assert "Operations" not in page


@pytest.mark.parametrize("verb", NODE_VERBS)
def test_readers_cannot_operate_nodes(client: Client, reader: User, verb: str) -> None:
    client.force_login(reader)
    node = make_member(status="ACTIVE")
    where = reverse(f"clusters:{verb}", args=[node.uuid])
    assert where not in show(client, "cluster:member", node.uuid)
    assert client.post(where).status_code == 403


def test_operation_without_the_start_permission_creates_a_recommended_plan(client: Client, stranger: User) -> None:
    names = ["operate_cluster", "view_cluster"]
    stranger.user_permissions.set(Permission.objects.filter(codename__in=names))
    client.force_login(User.objects.get(pk=stranger.pk))
    cluster = make_cluster("web")
    client.post(reverse("clusters:scale-out", args=[cluster.uuid]), {"count": "1"})
    assert ActionPlan.objects.get().state == "RECOMMENDED"


def test_clusters_are_refused_without_the_view_permission(client: Client, stranger: User) -> None:
    client.force_login(stranger)
    cluster = make_cluster("web")
    assert client.get(reverse("clusters:list")).status_code == 403
    assert client.get(reverse("clusters:detail", args=[cluster.uuid])).status_code == 403


# Queries


def test_cluster_list_query_count_does_not_depend_on_the_number_of_clusters(
    browser: Client, django_assert_num_queries: Any
) -> None:
    make_cluster("first", size=1)
    show(browser, "clusters:list")
    for number in range(10):
        make_cluster(str(number), size=2)
    with django_assert_num_queries(5):  # the session, the user, the saved filters, the count, the rows
        show(browser, "clusters:list")


def test_cluster_page_query_count_does_not_depend_on_the_number_of_members(
    browser: Client, django_assert_num_queries: Any
) -> None:
    small, large = make_cluster("small", size=1), make_cluster("large", size=60)
    for cluster in (small, large):
        bind(cluster, cluster.name)
        show(browser, "clusters:detail", cluster.uuid)
        with django_assert_num_queries(10):
            show(browser, "clusters:detail", cluster.uuid)
