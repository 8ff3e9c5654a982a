"""The exclusion form, filled in for skipped actions."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from actions.models import Action
from actions.models.exclusions import Exclusion
from plans.models import ActionPlan
from tests.builders import make_plan, make_server


@pytest.fixture
def administrator(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


@pytest.fixture
def plan(db: None) -> ActionPlan:
    plan = make_plan()
    for name in ("web-1", "web-2"):
        parameters = {"resource_id": str(make_server(name).uuid), "migration_type": "live", "source_node": "compute1"}
        Action.objects.create(action_plan=plan, action_type="migrate", input_parameters=parameters)
    return plan


def test_exclusion_form_is_filled_in_for_the_skipped_actions(administrator: Client, plan: ActionPlan) -> None:
    uuids = [action.uuid for action in plan.actions.all()]
    fields = {"actions": uuids, "confirmed": "yes", "reason": "month-end closing", "exclude": "yes"}
    response = administrator.post(reverse("plans:skip", args=[plan.uuid]), fields, follow=True)
    assert response.redirect_chain[0][0].startswith(reverse("exclusions:new"))
    form = response.context["form"]
    servers = [action.input_parameters["resource_id"] for action in plan.actions.order_by("pk")]
    assert (form["action_types"].value(), form["reason"].value()) == (["migrate"], "month-end closing")
    assert sorted(form["servers"].value().split()) == sorted(servers)
    assert set(plan.actions.values_list("state", flat=True)) == {"SKIPPED"}


def test_filled_in_exclusion_form_can_be_saved(administrator: Client, plan: ActionPlan) -> None:
    form = administrator.get(f"{reverse('exclusions:new')}?action={plan.actions.earliest('pk').uuid}").context["form"]
    fields = {name: form[name].value() or "" for name in ("action_types", "servers", "zone")}
    administrator.post(reverse("exclusions:new"), {**fields, "name": "closing"})
    exclusion = Exclusion.objects.get()
    server = plan.actions.earliest("pk").input_parameters["resource_id"]
    assert (exclusion.action_types, exclusion.targets) == (["migrate"], {"servers": [server]})


def test_actions_without_a_server_propose_only_their_types(administrator: Client) -> None:
    action = make_plan({"a": []}).actions.get()
    form = administrator.get(f"{reverse('exclusions:new')}?action={action.uuid}&action=x").context["form"]
    assert (form["action_types"].value(), form["servers"].value()) == (["nop"], None)


def test_action_page_links_the_exclusion_form(administrator: Client, plan: ActionPlan) -> None:
    uuid = plan.actions.earliest("pk").uuid
    text = administrator.get(reverse("actions:detail", args=[uuid])).content.decode()
    assert f"{reverse('exclusions:new')}?action={uuid}" in text


def test_exclusion_is_not_offered_without_the_add_permission(client: Client, stranger: User, plan: ActionPlan) -> None:
    names = ["view_actionplan", "view_action", "skip_action"]
    stranger.user_permissions.set(Permission.objects.filter(codename__in=names))
    client.force_login(stranger)
    uuid = plan.actions.earliest("pk").uuid
    assert "exclude" not in client.post(reverse("plans:skip", args=[plan.uuid]), {"only": uuid}).content.decode()
