"""The console's forms that create, update and delete stacks by plans."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from actions.models import Action
from cluster.models import Stack
from cluster.stacks.templates.templates import format_template, normalise
from plans.models import ActionPlan
from plans.operations.base import RequestOptions
from plans.operations.stacks import update_stack
from tests.builders import make_flavor, make_resource, make_stack

pytestmark = pytest.mark.django_db

TEXT = "resources:\r\n  web: {type: server, properties: {flavor: small}}\r\n"
NEW = {"name": "shop", "template": TEXT, "project_id": "acme"}


@pytest.fixture
def browser(client: Client, cloud_admin: User) -> Client:
    make_flavor("small")
    client.force_login(cloud_admin)
    return client


@pytest.fixture
def stack() -> Stack:
    return make_stack(template=normalise(TEXT), revision=3)


def at(verb: str, stack: Stack) -> str:
    return reverse(f"stacks:{verb}", args=[stack.uuid])


def test_stack_is_created_by_a_plan_whose_page_is_shown(browser: Client) -> None:
    assert "Create the action plan for review" in browser.get(reverse("stacks:create")).content.decode()
    answer = browser.post(reverse("stacks:create"), NEW, follow=True)
    plan, made = ActionPlan.objects.get(), Stack.objects.get()
    assert answer.redirect_chain == [(reverse("plans:detail", args=[plan.uuid]), 302)]
    assert "creates the resources" in answer.content.decode()
    assert (plan.state, made.name, made.project_id, made.template) == ("PENDING", "shop", "acme", normalise(TEXT))


def test_plan_only_creation_shows_the_proposed_actions(browser: Client) -> None:
    answer = browser.post(reverse("stacks:create"), NEW | {"plan_only": "on"}, follow=True)
    assert ActionPlan.objects.get().state == "RECOMMENDED"
    assert "create_resource" in answer.content.decode()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"template": "resources: {web: {type: volume, properties: {}}}"},
            "web.type: &#x27;volume&#x27; is not one of",
        ),
        ({"template": "a: [1"}, "line 2: is neither JSON nor YAML"),
        ({"template": ""}, "This field is required"),
        ({"name": "1 shop"}, "Must have 1 to 255 letters"),
        ({"name": "taken", "project_id": ""}, "Another stack of the project is called taken."),
    ],
)
def test_invalid_value_is_refused_and_the_input_kept(browser: Client, change: dict[str, str], words: str) -> None:
    make_stack("taken")
    answer = browser.post(reverse("stacks:create"), NEW | change)
    assert answer.status_code == 200
    assert words in answer.content.decode()
    assert not ActionPlan.objects.exists()


def test_unchanged_template_is_not_sent(browser: Client, stack: Stack) -> None:
    assert "flavor: small" in browser.get(at("update", stack)).content.decode()
    shown = format_template(stack.template).replace("\n", "\r\n")
    browser.post(at("update", stack), {"template": shown, "revision": "3"})
    action = Action.objects.get()
    assert action.action_type == "update_stack"
    assert "template" not in action.input_parameters


def test_changed_template_is_sent(browser: Client, stack: Stack) -> None:
    browser.post(at("update", stack), {"template": "resources: {}", "revision": "3", "plan_only": "on"})
    action = Action.objects.get(derived_from=None)
    assert action.input_parameters["template"] == normalise({"resources": {}})


def test_changed_timeout_is_sent(browser: Client, stack: Stack) -> None:
    shown = format_template(stack.template).replace("\n", "\r\n")
    browser.post(at("update", stack), {"template": shown, "revision": "3", "timeout_mins": "90"})
    action = Action.objects.get()
    assert (action.input_parameters["timeout_mins"], action.timeout) == (90, 5400)


def test_update_of_an_outdated_template_is_refused(browser: Client, stack: Stack) -> None:
    answer = browser.post(at("update", stack), {"template": "resources: {}", "revision": "2"})
    assert "The stack was changed after this page was loaded" in answer.content.decode()
    assert not ActionPlan.objects.exists()


def test_stack_deletion_can_be_planned_for_review(browser: Client, stack: Stack) -> None:
    assert "Create the action plan for review" in browser.get(at("delete", stack)).content.decode()
    answer = browser.post(at("delete", stack), {"plan_only": "on"})
    plan = ActionPlan.objects.get()
    assert (plan.state, answer["Location"]) == ("RECOMMENDED", reverse("plans:detail", args=[plan.uuid]))


@pytest.mark.parametrize("plan_only", [True, False])
def test_operations_are_not_offered_while_another_is_in_progress(
    browser: Client, stack: Stack, plan_only: bool
) -> None:
    make_resource(stack, "web")
    update_stack(stack, options=RequestOptions(plan_only=plan_only))
    page = browser.get(at("detail", stack)).content.decode()
    verbs = [at("update", stack), at("delete", stack), "/mark/"]
    assert [verb in page for verb in verbs] == [plan_only] * 3
    assert ("state-update_in_progress" in page) is not plan_only
    assert ("state-update_in_progress" in browser.get(reverse("stacks:list")).content.decode()) is not plan_only


def test_stack_list_is_filtered_by_the_displayed_status(browser: Client, stack: Stack) -> None:
    update_stack(stack)
    for status, is_found in (("UPDATE_IN_PROGRESS", True), (stack.status, False)):
        page = browser.get(reverse("stacks:list"), {"status": status}).content.decode()
        assert (at("detail", stack) in page) is is_found


def test_nested_stack_has_no_forms(browser: Client, stack: Stack) -> None:
    inner = make_stack("shop-inner-x", make_resource(stack, "inner", type="stack"))
    assert {browser.get(at(verb, inner)).status_code for verb in ("update", "delete")} == {404}


def test_readers_are_refused_the_stack_forms(client: Client, reader: User, stack: Stack) -> None:
    client.force_login(reader)
    for where in (reverse("stacks:create"), at("update", stack), at("delete", stack)):
        assert (client.get(where).status_code, client.post(where, NEW).status_code) == (403, 403)
