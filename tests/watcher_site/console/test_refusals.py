"""Refusals are in the language of the reader on pages, and in English in history and in responses of the API."""

from html import unescape

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from audits.models import Audit
from cluster.models import Cluster
from tests.api import Caller, fault
from tests.builders import make_audit, make_binding, make_cluster, make_plan, make_profile, make_strategy
from tests.watcher_site.notifications.relaying import subscribe_to
from watcher_site.accounts.login_limits import login_of
from watcher_site.models import HistoryEntry

pytestmark = pytest.mark.django_db
GERMAN = {"accept-language": "de"}


@pytest.fixture
def reader(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def submit(reader: Client, page: str, *arguments: object, **fields: object) -> str:
    """Return the text of the page after a form was submitted by a German reader."""
    answer = reader.post(reverse(page, args=arguments), fields, headers=GERMAN, follow=True)
    return unescape(answer.content.decode())


def test_form_that_is_larger_than_the_limit_is_refused_with_413(reader: Client, settings: Settings) -> None:
    body = f"name={'x' * settings.DATA_UPLOAD_MAX_MEMORY_SIZE}"
    answer = reader.post(reverse("exclusions:new"), body, "application/x-www-form-urlencoded", headers=GERMAN)
    assert (answer.status_code, "Anfrage zu groß" in answer.content.decode()) == (413, True)


def test_refused_deletion_of_a_policy_is_explained(reader: Client) -> None:
    policy = make_binding(make_cluster(), "senlin.policy.deletion-1.1").policy
    assert f"Richtlinie {policy.uuid} ist in Gebrauch: 1 Cluster." in submit(
        reader, "cluster:delete-policy", policy.uuid
    )
    assert HistoryEntry.objects.get(deed="policy.delete").message == f"Policy {policy.uuid} is in use by 1 cluster."


def test_refused_size_of_a_cluster_is_explained_at_its_field(reader: Client) -> None:
    profile = make_profile()
    fields = {"name": "web", "profile": profile.uuid, "min_size": 2, "desired_capacity": 1}
    shown = submit(reader, "clusters:create", **fields)
    assert "Die Zielkapazität (1) ist kleiner als die min_size des Clusters (2)." in shown
    assert not Cluster.objects.exists()


def test_refused_interval_of_an_audit_is_explained_at_its_field(reader: Client) -> None:
    make_strategy()
    fields = {"goal": "dummy", "strategy": "dummy", "audit_type": "CONTINUOUS", "interval": "61 * * * *"}
    shown = submit(reader, "audits:create", **fields)
    assert "interval: '61 * * * *' ist weder eine Zahl von Sekunden noch ein Cron-Ausdruck" in shown
    assert "[61 * * * *] liegt außerhalb des gültigen Bereichs." in shown


def test_refused_template_of_a_stack_is_explained_with_the_path(reader: Client) -> None:
    template = "resources: {web: {type: server, properties: {flavor: huge}}}"
    shown = submit(reader, "stacks:create", name="shop", template=template)
    assert "resources.web.properties.flavor: die Cloud hat keinen Eintrag huge für flavor." in shown


def test_refused_name_of_a_subscription_is_explained(reader: Client, settings: Settings) -> None:
    settings.WEBHOOK_PRIVATE_ADDRESSES = True
    subscribe_to("http://192.0.2.7/events", name="pager")
    fields = {"name": "pager", "url": "http://192.0.2.8/events", "event_types": "*", "enabled": "on"}
    assert "ein anderes Abonnement heißt bereits pager." in submit(reader, "notifications:new", **fields)


def test_refused_login_is_explained_after_too_many_attempts(client: Client, settings: Settings) -> None:
    settings.MOST_FAILED_LOGINS = 1
    attempt = login_of(type("Request", (), {"META": {"REMOTE_ADDR": "127.0.0.1"}}), "rosa")
    assert attempt is not None
    attempt.record_failure()
    shown = submit(client, "login", username="rosa", password="wrong")
    assert "Zu viele fehlgeschlagene Anmeldungen von dieser Adresse. Bitte in 10 Minuten erneut versuchen." in shown


def test_api_responds_in_english_to_a_german_client(api: Caller) -> None:
    audit = make_audit(state=Audit.State.ONGOING)
    plan = make_plan({"a": []}, state="ONGOING")
    make_strategy()
    fields = {"goal": "dummy", "audit_type": "CONTINUOUS", "interval": "61 * * * *"}
    refused = [
        api.delete(f"/audits/{audit.uuid}", **GERMAN),
        api.delete(f"/action_plans/{plan.uuid}", **GERMAN),
        api.post("/audits", fields, **GERMAN),
    ]
    assert [fault(answer) for answer in refused] == [
        "Couldn't delete when state is 'ONGOING'.",
        "Couldn't delete when state is 'ONGOING'.",
        "interval: '61 * * * *' is neither a number of seconds nor a cron expression: [61 * * * *] is not acceptable,"
        " out of range.",
    ]
