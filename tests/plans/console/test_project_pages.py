"""Console pages for members of projects, which show the servers, stacks and clusters of these projects only."""

from time import time
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries, Settings

from actions.models import Action
from cluster.models import Cluster, Server, Stack
from cluster.stacks.templates.templates import normalise
from tests.builders import (
    action,
    make_cluster,
    make_flavor,
    make_member,
    make_node,
    make_plan,
    make_profile,
    make_resource,
    make_server,
    make_stack,
)
from tests.conftest import person
from tests.plans.inline import run_waiting
from watcher_site.accounts.projects import add_member
from watcher_site.models import HistoryEntry
from watcher_site.request_context import seal
from watcher_site.web.middleware import KEYSTONE_KEY

pytestmark = pytest.mark.django_db
TEMPLATE = normalise("resources: {web: {type: server, properties: {flavor: small}}}")
HOST = "secret-host"
SERVER_VERBS = ("delete", "rebuild", "reset", "mark", "clear")
STACK_VERBS = ("update", "delete", "mark", "clear")
CLUSTER_VERBS = ("scale-out", "scale-in", "resize", "check", "recover", "delete")


@pytest.fixture
def member(client: Client) -> Client:
    """The browser of a member of the projects acme and shop."""
    client.force_login(person("mia"))
    add_member("mia", "acme")
    add_member("mia", "shop")
    return client


@pytest.fixture
def records() -> dict[str, dict[str, Any]]:
    """A server, a stack with a resource, and a cluster with a node, for each of two projects."""
    make_flavor("small")
    host, profile = make_node(HOST), make_profile("small web")
    found = {}
    for project in ("acme", "other"):
        server = make_server(f"{project} server", host, project_id=project)
        stack = make_stack(f"{project}-stack", project_id=project, template=TEMPLATE, status="CREATE_COMPLETE")
        cluster = make_cluster(f"{project} cluster", project_id=project, profile=profile, status="ACTIVE")
        make_member(f"{project} node", cluster=cluster, project_id=project, server=server, profile=profile, index=1)
        resource = make_resource(stack, "web", physical_id=str(server.uuid), status="CREATE_COMPLETE")
        found[project] = {"server": server, "stack": stack, "cluster": cluster, "resource": resource}
    return found


def pages_of(records: dict[str, Any]) -> list[str]:
    return [reverse(f"projects:{kind}", args=[records[kind].uuid]) for kind in ("server", "stack", "cluster")]


def buttons_of(records: dict[str, Any]) -> list[str]:
    verbs = {"server": SERVER_VERBS, "stack": STACK_VERBS, "cluster": CLUSTER_VERBS, "resource": ("mark", "clear")}
    return [
        reverse(f"projects:{kind}-{verb}", args=[records[kind].uuid])
        for kind, names in verbs.items()
        for verb in names
    ]


def log_in_by_keystone(client: Client, settings: Settings, **attributes: Any) -> None:
    """Start a session of a user of Keystone, by default in the project acme."""
    settings.KEYSTONE_URL = "http://127.0.0.1:9/v3"
    user = {"user_id": "id-of-rosa", "name": "rosa", "scope": "project", "project_id": "acme", **attributes}
    session = client.session
    session[KEYSTONE_KEY] = {"user": user, "domain": "Default", "project": user["project_id"], "tokens": seal({})}
    session[KEYSTONE_KEY] |= {"expires_at": time() + 3600, "checked_at": time()}
    session.save()


ADMINISTRATORS_PAGES = ("cluster:servers", "stacks:list", "clusters:list", "users:list")
LISTS = ("projects:servers", "projects:stacks", "projects:clusters")


def test_lists_show_only_records_of_the_members_projects_without_hosts(member: Client, records: Any) -> None:
    for name in LISTS:
        text = member.get(reverse(name)).content.decode()
        assert ("acme" in text, "other" in text, HOST in text) == (True, False, False), name


def test_pages_show_records_of_the_members_projects_without_hosts(member: Client, records: Any) -> None:
    for path in pages_of(records["acme"]):
        text = member.get(path).content.decode()
        assert ("acme" in text, HOST in text) == (True, False), path


@pytest.mark.parametrize("page", ["clusters", "cluster", "stacks"])
def test_tables_of_records_without_a_reason_have_no_column_for_it(member: Client, records: Any, page: str) -> None:
    arguments = [records["acme"]["cluster"].uuid] if page == "cluster" else []
    text = member.get(reverse(f"projects:{page}", args=arguments)).content.decode()
    assert 'data-label="Status"' in text
    assert 'data-label="Reason"' not in text


def test_pages_show_the_same_fields_as_pages_of_administrators(member: Client, records: Any) -> None:
    own = records["acme"]
    Server.objects.update(memory=2048)
    server, stack, cluster = (member.get(path).content.decode() for path in pages_of(own))
    for page, record in zip((server, stack, cluster), (own["server"], own["stack"], own["cluster"]), strict=True):
        assert f'data-copy="{record.uuid}"' in page
    assert "2 GB" in " ".join(server.split())


def test_summaries_of_a_resource_tree_contain_no_links(member: Client, records: Any) -> None:
    stack = records["acme"]["stack"]
    group = make_resource(stack, "group", type="scaling_group", status="CREATE_COMPLETE")
    make_resource(make_stack("inner", holder=group, project_id="acme"), "inner-web", status="CREATE_COMPLETE")
    page = member.get(reverse("projects:stack", args=[stack.uuid])).content.decode()
    summaries = [part.partition("</summary>")[0] for part in page.split("<summary>")[1:]]
    assert summaries
    assert [part for part in summaries if "<a " in part] == []


@pytest.mark.parametrize("kind", ["stack", "cluster"])
def test_project_page_shows_a_notice_without_javascript_during_an_operation(
    member: Client, records: Any, kind: str
) -> None:
    path = reverse(f"projects:{kind}", args=[records["acme"][kind].uuid])
    words = "Without JavaScript this page does not update itself."
    assert words not in member.get(path).content.decode()
    Stack.objects.update(status="UPDATE_IN_PROGRESS")
    holder = action(make_plan({"a": []}, state="ONGOING"), "a")
    records["acme"]["cluster"].locks.create(action=holder.uuid, is_exclusive=True)
    page = member.get(path).content.decode()
    assert (words in page, "was deleted." in page) == (True, True)


def test_pages_and_buttons_of_records_of_other_projects_return_404(member: Client, records: Any) -> None:
    paths = [*pages_of(records["other"]), *buttons_of(records["other"])]
    assert {path: member.get(path).status_code for path in paths} == dict.fromkeys(paths, 404)
    buttons = buttons_of(records["other"])
    assert {path: member.post(path).status_code for path in buttons} == dict.fromkeys(buttons, 404)
    assert not Action.objects.exists()


def test_each_button_requires_confirmation(member: Client, records: Any) -> None:
    buttons = buttons_of(records["acme"])
    assert {path: member.get(path).status_code for path in buttons} == dict.fromkeys(buttons, 200)
    assert not Action.objects.exists()


def test_project_pages_are_not_found_without_a_project(client: Client, stranger: User, records: Any) -> None:
    client.force_login(stranger)
    paths = [*map(reverse, LISTS), *pages_of(records["acme"]), *buttons_of(records["acme"])]
    assert {path: client.get(path).status_code for path in paths} == dict.fromkeys(paths, 404)
    buttons = buttons_of(records["acme"])
    assert {path: client.post(path).status_code for path in buttons} == dict.fromkeys(buttons, 404)
    assert not Action.objects.exists()


@pytest.mark.parametrize("page", LISTS)
def test_project_pages_without_a_project_name_who_can_add_the_user_to_one(
    client: Client, stranger: User, page: str
) -> None:
    client.force_login(stranger)
    text = client.get(reverse(page)).content.decode()
    assert "You are a member of no project." in text
    assert "A cloud administrator can add you to one." in text
    assert [reverse(name) for name in ADMINISTRATORS_PAGES if f'href="{reverse(name)}"' in text] == []


@pytest.mark.parametrize("page", LISTS)
def test_project_pages_without_a_project_link_the_pages_of_administrators(
    client: Client, cloud_admin: User, page: str
) -> None:
    client.force_login(cloud_admin)
    answer = client.get(reverse(page))
    text = answer.content.decode().partition("<main")[2]
    assert "You are a member of no project." in text
    assert "A cloud administrator can" not in text
    assert [name for name in ADMINISTRATORS_PAGES if f'href="{reverse(name)}"' not in text] == []


def test_missing_project_is_not_recorded_as_a_refusal(client: Client, cloud_admin: User, records: Any) -> None:
    client.force_login(cloud_admin)
    for path in (*map(reverse, LISTS), *pages_of(records["acme"])):
        client.get(path)
    assert not HistoryEntry.objects.exists()


def test_project_pages_offer_the_scopes_to_a_keystone_user_of_the_system(client: Client, settings: Settings) -> None:
    log_in_by_keystone(client, settings, scope="system", project_id=None, roles=["admin"])
    answer = client.get(reverse("projects:servers"))
    text = answer.content.decode()
    assert (answer.status_code, "The scope of your session is not a project." in text) == (404, True)
    assert f'href="{reverse("account:scope")}"' in text


def test_project_pages_are_refused_to_a_keystone_user_without_a_role_in_the_project(
    client: Client, settings: Settings
) -> None:
    log_in_by_keystone(client, settings, roles=["auditor"])
    assert client.get(reverse("projects:servers")).status_code == 403
    assert HistoryEntry.objects.get().outcome == "refused"


def test_project_pages_redirect_to_the_login_without_a_session(client: Client, records: Any) -> None:
    assert "/login/" in client.get(reverse("projects:servers"))["Location"]


def test_keystone_reader_of_a_project_sees_its_records_without_buttons(
    client: Client, records: Any, settings: Settings
) -> None:
    log_in_by_keystone(client, settings, roles=["reader"])
    buttons = buttons_of(records["acme"])
    for path in pages_of(records["acme"]):
        text = client.get(path).content.decode()
        assert ("acme" in text, [button for button in buttons if button in text]) == (True, [])
    assert {path: client.post(path).status_code for path in buttons} == dict.fromkeys(buttons, 403)


def test_pages_of_all_projects_are_refused_to_members(member: Client, records: Any) -> None:
    server, stack = records["acme"]["server"], records["acme"]["stack"]
    paths = [
        reverse("cluster:servers"),
        reverse("cluster:server", args=[server.uuid]),
        reverse("stacks:detail", args=[stack.uuid]),
        reverse("marks:mark-server", args=[server.uuid]),
        reverse("stacks:delete", args=[stack.uuid]),
    ]
    assert [member.get(path).status_code for path in paths] == [403] * len(paths)


def test_navigation_of_a_member_has_only_the_project_pages(member: Client, records: Any) -> None:
    text = member.get(reverse("home")).content.decode()
    shown = {name: f'href="{reverse(name)}"' in text for name in (*LISTS, "cluster:servers", "plans:list")}
    assert shown == {**dict.fromkeys(LISTS, True), "cluster:servers": False, "plans:list": False}
    assert (HOST in text, "Services" in text) == (False, False)


def test_navigation_of_an_administrator_has_no_project_pages(client: Client, cloud_admin: User) -> None:
    add_member("alice", "acme")
    client.force_login(cloud_admin)
    assert reverse("projects:servers") not in client.get(reverse("home")).content.decode()


def test_member_deletes_a_server(member: Client, records: Any) -> None:
    server = records["acme"]["server"]
    answer = member.post(reverse("projects:server-delete", args=[server.uuid]), follow=True)
    assert answer.redirect_chain == [(reverse("projects:servers"), 302)]
    run_waiting()
    assert not Server.objects.present().filter(pk=server.pk).exists()


def test_member_rebuilds_a_server_from_an_image(member: Client, records: Any) -> None:
    path = reverse("projects:server-rebuild", args=[records["acme"]["server"].uuid])
    assert member.post(path, {"image": "x" * 256}).status_code == 200
    answer = member.post(path, {"image": "another image"}, follow=True)
    assert "Rebuild requested: acme server." in answer.content.decode()
    run_waiting()
    assert Server.objects.get(name="acme server").image == "another image"


def test_second_rebuild_is_refused_in_the_form(member: Client, records: Any) -> None:
    path = reverse("projects:server-rebuild", args=[records["acme"]["server"].uuid])
    member.post(path)
    answer = member.post(path)
    assert (answer.status_code, "conflicts with the following action" in answer.content.decode()) == (200, True)


def test_member_resets_a_server_that_waits_for_capacity(member: Client, records: Any) -> None:
    waiting = make_server("waiting", None, project_id="acme", state="pending", vcpus=9999)
    page = reverse("projects:server", args=[waiting.uuid])
    assert reverse("projects:server-reset", args=[waiting.uuid]) in member.get(page).content.decode()
    assert member.post(reverse("projects:server-reset", args=[waiting.uuid])).status_code == 302
    run_waiting()
    waiting.refresh_from_db()
    assert waiting.state == "error"


def test_reset_of_an_active_server_is_refused(member: Client, records: Any) -> None:
    server = records["acme"]["server"]
    answer = member.post(reverse("projects:server-reset", args=[server.uuid]), follow=True)
    assert "while it is in vm_state active" in answer.content.decode()
    assert not Action.objects.exists()


def test_member_marks_a_resource_and_updates_the_stack(member: Client, records: Any) -> None:
    stack, resource = records["acme"]["stack"], records["acme"]["resource"]
    answer = member.post(reverse("projects:resource-mark", args=[resource.uuid]), {"reason": "it hangs"}, follow=True)
    assert (answer.redirect_chain[0][0], "it hangs" in answer.content.decode()) == (
        f"{reverse('projects:stack', args=[stack.uuid])}#resource-{resource.uuid}",
        True,
    )
    small = "{type: server, properties: {flavor: small}}"
    text = f"resources:\n  web: {small}\n  db: {small}\n"
    update = reverse("projects:stack-update", args=[stack.uuid])
    answer = member.post(update, {"template": text, "revision": stack.revision, "plan_only": "on"})
    assert answer["Location"] == reverse("projects:stack", args=[stack.uuid])
    run_waiting()
    assert Stack.objects.get(pk=stack.pk).status == "UPDATE_COMPLETE"


def test_member_deletes_a_stack(member: Client, records: Any) -> None:
    stack = records["acme"]["stack"]
    answer = member.post(reverse("projects:stack-delete", args=[stack.uuid]))
    assert answer["Location"] == reverse("projects:stacks")
    run_waiting()
    assert not Stack.objects.present().filter(pk=stack.pk).exists()


def test_member_scales_a_cluster_without_plan_only_and_deletes_it(member: Client, records: Any) -> None:
    cluster = records["acme"]["cluster"]
    path = reverse("projects:cluster-scale-out", args=[cluster.uuid])
    assert "Plan only" not in member.get(path).content.decode()
    answer = member.post(path, {"count": 1, "plan_only": "on"})
    assert answer["Location"] == reverse("projects:cluster", args=[cluster.uuid])
    run_waiting()
    assert set(cluster.members().values_list("project_id", flat=True)) == {"acme"}
    assert cluster.members().count() == 2
    assert member.post(reverse("projects:cluster-delete", args=[cluster.uuid]), {"force": "on"}).status_code == 302
    run_waiting()
    assert not Cluster.objects.present().filter(pk=cluster.pk).exists()


def test_page_of_a_cluster_names_the_servers_of_its_nodes(member: Client, records: Any) -> None:
    page = member.get(reverse("projects:cluster", args=[records["acme"]["cluster"].uuid])).content.decode()
    address = reverse("projects:server", args=[records["acme"]["server"].uuid])
    assert f'<a href="{address}">acme server</a>' in page


# The lists, then the pages of servers, stacks and clusters; three queries of each are for the session.
QUERIES = (8, 7, 6, 6, 8, 8)


@pytest.mark.parametrize("count", [1, 6])
def test_project_page_query_count_does_not_depend_on_the_number_of_records(
    member: Client, records: Any, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    host, cluster, stack = Server.objects.all()[0].node, records["acme"]["cluster"], records["acme"]["stack"]
    for number in range(count):
        server = make_server(f"more {number}", host, project_id="shop")
        make_member(f"node {number}", cluster=cluster, server=server, index=number + 2, project_id="acme")
        make_resource(stack, f"web{number}", physical_id=str(server.uuid))
        make_stack(f"more{number}", project_id="shop")
        make_cluster(f"more {number}", project_id="shop", profile=cluster.profile)
    member.get(reverse("home"))
    paths = [*map(reverse, LISTS), *pages_of(records["acme"])]
    for path, number in zip(paths, QUERIES, strict=True):
        with django_assert_num_queries(number, info=path):
            member.get(path)


def test_unknown_record_returns_404(member: Client) -> None:
    assert member.get(reverse("projects:server", args=[uuid4()])).status_code == 404


def test_member_creates_a_stack_in_a_project(member: Client) -> None:
    make_flavor("small")
    body = {"name": "shop", "project_id": "acme", "resources.0.name": "web", "resources.0.flavor": "small"}
    answer = member.post(reverse("projects:stack-create"), body, follow=True)
    stack = Stack.objects.get()
    assert answer.redirect_chain == [(reverse("projects:stack", args=[stack.uuid]), 302)]
    assert (stack.project_id, Action.objects.get().action_plan.state) == ("acme", "PENDING")


def test_member_creates_a_cluster_with_a_profile_of_the_project(member: Client) -> None:
    make_flavor("small")
    own = make_profile("own", project_id="acme")
    body = {"name": "web", "project_id": "acme", "profile": str(own.uuid), "desired_capacity": "1"}
    answer = member.post(reverse("projects:cluster-create"), body, follow=True)
    cluster = Cluster.objects.get()
    assert answer.redirect_chain == [(reverse("projects:cluster", args=[cluster.uuid]), 302)]
    assert cluster.project_id == "acme"


def test_member_cannot_create_a_stack_in_another_project(member: Client) -> None:
    make_flavor("small")
    body = {"name": "shop", "project_id": "other", "resources.0.name": "web", "resources.0.flavor": "small"}
    assert "Select a valid choice" in member.post(reverse("projects:stack-create"), body).content.decode()
    assert not Stack.objects.exists()


def test_profiles_of_other_projects_are_not_offered(member: Client) -> None:
    make_profile("foreign", project_id="other")
    make_profile("shared")
    page = member.get(reverse("projects:cluster-create")).content.decode()
    assert "shared" in page
    assert "foreign" not in page


@pytest.mark.parametrize("page", ["projects:stack-create", "projects:cluster-create"])
def test_creation_forms_are_not_found_without_a_project(client: Client, page: str) -> None:
    client.force_login(person("nobody"))
    assert client.get(reverse(page)).status_code == 404


def test_template_form_keeps_the_chosen_project(member: Client) -> None:
    make_flavor("small")
    body = {"name": "shop", "project_id": "shop", "resources.0.name": "web", "resources.0.flavor": "small"}
    page = member.post(reverse("projects:stack-create"), body | {"document": "1"}).content.decode()
    assert '<option value="shop" selected>' in page
    assert "flavor: small" in page


def test_invisible_characters_in_metadata_are_made_visible(member: Client) -> None:
    server = make_server("web", project_id="acme", metadata={"ro\u202ele": "a\x1bb"})
    page = member.get(reverse("projects:server", args=[server.uuid])).content.decode()
    assert 'ro<span class="control">U+202E</span>le' in page
    assert 'a<span class="control">␛</span>b' in page
