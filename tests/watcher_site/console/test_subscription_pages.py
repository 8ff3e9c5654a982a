"""The pages of subscriptions and of undelivered notifications in the console."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from tests.builders import make_server
from tests.watcher_site.notifications.relaying import make_undelivered, subscribe_to
from watcher_site.models import Delivery, Notification, Subscription
from watcher_site.notifications.webhooks import unseal_secret

pytestmark = pytest.mark.django_db

PUBLIC = "http://192.0.2.7/events"


@pytest.fixture
def browser(client: Client, cloud_admin: User, settings: Settings) -> Client:
    settings.WEBHOOK_PRIVATE_ADDRESSES = True
    client.force_login(cloud_admin)
    return client


def test_subscription_is_created_changed_and_deleted_with_its_secret_shown_once(browser: Client) -> None:
    fields = {"name": "pager", "url": PUBLIC, "event_types": "action.*, *.error", "enabled": "on"}
    made = browser.post(reverse("notifications:new"), fields, follow=True).content.decode()
    subscription = Subscription.objects.get()
    assert unseal_secret(subscription) in made
    assert subscription.event_types == ["action.*", "*.error"]
    changed = browser.post(
        reverse("notifications:change", args=[subscription.uuid]), fields | {"enabled": ""}, follow=True
    )
    assert unseal_secret(subscription) not in changed.content.decode()
    assert not Subscription.objects.get().enabled
    assert "pager" in browser.get(reverse("notifications:list")).content.decode()
    browser.post(reverse("notifications:delete", args=[subscription.uuid]))
    assert not Subscription.objects.present().exists()


def test_mail_subscription_is_created_and_changed_without_scripts(browser: Client, settings: Settings) -> None:
    settings.EMAIL_HOST = "mail.example.org"
    form = browser.get(f"{reverse('notifications:new')}?kind=mail").content.decode()
    assert ('name="addresses"' in form, 'name="url"' in form) == (True, False)
    fields = {"kind": "mail", "name": "mail", "addresses": "rosa@example.org, max@example.org", "event_types": "*"}
    made = browser.post(reverse("notifications:new"), fields, follow=True).content.decode()
    subscription = Subscription.objects.get()
    assert (subscription.kind, subscription.addresses) == ("mail", ["rosa@example.org", "max@example.org"])
    assert ("rosa@example.org, max@example.org" in made, "New secret" in made) == (True, False)
    page = reverse("notifications:change", args=[subscription.uuid])
    refused = browser.post(page, fields | {"addresses": "rosa"}).content.decode()
    assert "rosa is not an address of e-mail." in refused
    browser.post(page, fields | {"addresses": "eva@example.org"})
    assert Subscription.objects.get().addresses == ["eva@example.org"]
    assert "eva@example.org" in browser.get(reverse("notifications:list")).content.decode()


def test_missing_mail_server_is_named_in_the_form(browser: Client, settings: Settings) -> None:
    settings.EMAIL_HOST = ""
    assert "EMAIL_URL" in browser.get(f"{reverse('notifications:new')}?kind=mail").content.decode()
    fields = {"kind": "mail", "name": "mail", "addresses": "rosa@example.org", "event_types": "*"}
    assert "kind: the site sends no e-mail" in browser.post(reverse("notifications:new"), fields).content.decode()
    assert not Subscription.objects.exists()


def test_url_of_a_chat_is_shown_on_no_page(browser: Client) -> None:
    fields = {"kind": "slack", "name": "chat", "url": f"{PUBLIC}/T0KEN", "event_types": "*", "enabled": "on"}
    browser.post(reverse("notifications:new"), fields)
    subscription = Subscription.objects.get()
    change = reverse("notifications:change", args=[subscription.uuid])
    pages = [change, reverse("notifications:list"), reverse("notifications:detail", args=[subscription.uuid])]
    texts = [browser.get(page).content.decode() for page in pages]
    assert all("http://192.0.2.7" in text and "T0KEN" not in text for text in texts)
    browser.post(change, fields | {"url": "http://192.0.2.7"})
    assert unseal_secret(Subscription.objects.get()) == f"{PUBLIC}/T0KEN"
    browser.post(change, fields | {"url": f"{PUBLIC}/0THER"})
    assert unseal_secret(Subscription.objects.get()) == f"{PUBLIC}/0THER"


def test_unchanged_form_changes_nothing(browser: Client) -> None:
    subscription = subscribe_to(f"{PUBLIC}/T0KEN?key=1")
    page = reverse("notifications:change", args=[subscription.uuid])
    form = browser.get(page).context["form"]
    browser.post(page, {name: form[name].value() for name in form.fields})
    stored = Subscription.objects.get()
    assert (stored.name, stored.url) == (subscription.name, f"{PUBLIC}/T0KEN?key=1")
    assert (stored.event_types, stored.enabled) == (subscription.event_types, True)


def test_invalid_field_is_reported_at_the_field(browser: Client) -> None:
    fields = {"name": "pager", "url": "ftp://example.org", "event_types": "*"}
    text = browser.post(reverse("notifications:new"), fields).content.decode()
    assert "must begin with https:// or http://" in text
    assert not Subscription.objects.exists()


def test_all_invalid_fields_are_reported_together(browser: Client) -> None:
    fields = {"name": "a/b", "url": "ftp://example.org", "event_types": "nonsense"}
    form = browser.post(reverse("notifications:new"), fields).context["form"]
    assert form.errors.keys() == {"name", "url", "event_types"}


def test_renewed_secret_is_shown_and_not_cached(browser: Client) -> None:
    fields = {"name": "pager", "url": PUBLIC, "event_types": "*", "enabled": "on"}
    made = browser.post(reverse("notifications:new"), fields, follow=True)
    subscription = Subscription.objects.get()
    renewed = browser.post(reverse("notifications:secret", args=[subscription.uuid]), follow=True)
    assert made["Cache-Control"] == renewed["Cache-Control"] == "no-store"
    secret = unseal_secret(Subscription.objects.get())
    assert (secret in renewed.content.decode(), secret in made.content.decode()) == (True, False)


def test_test_message_is_sent_only_for_an_enabled_subscription(browser: Client) -> None:
    subscription = subscribe_to(PUBLIC)
    where = reverse("notifications:test", args=[subscription.uuid])
    detail = reverse("notifications:detail", args=[subscription.uuid])
    assert where in browser.get(detail).content.decode()
    assert "A test message is being sent." in browser.post(where, follow=True).content.decode()
    assert Delivery.objects.get().notification.event_type == "subscription.test"
    Subscription.objects.update(enabled=False)
    assert where not in browser.get(detail).content.decode()


@pytest.mark.parametrize(
    ("columns", "follows"),
    [({}, True), ({"enabled": False}, False), ({"due_time": datetime(2050, 1, 1, tzinfo=UTC)}, False)],
    ids=["sending", "disabled", "paused after a failure"],
)
def test_page_of_a_subscription_follows_a_test_message_until_its_result(
    browser: Client, columns: dict[str, Any], *, follows: bool
) -> None:
    subscription = subscribe_to(PUBLIC)
    browser.post(reverse("notifications:test", args=[subscription.uuid]))
    Subscription.objects.update(**columns)
    detail = reverse("notifications:detail", args=[subscription.uuid])
    text = browser.get(detail).content.decode()
    assert (f'hx-get="{detail}"' in text, "Without JavaScript this page does not update itself." in text) == (
        follows,
        follows,
    )


def test_part_of_the_page_of_a_subscription_shows_the_result_of_a_test_message(browser: Client) -> None:
    subscription = subscribe_to(PUBLIC)
    browser.post(reverse("notifications:test", args=[subscription.uuid]))
    Delivery.objects.all().delete()
    Subscription.objects.update(last_success=timezone.now(), problem="410 Gone")
    detail = reverse("notifications:detail", args=[subscription.uuid])
    text = browser.get(detail, headers={"hx-request": "true"}).content.decode()
    assert ("410 Gone" in text, "just now" in text) == (True, True)
    assert ("<html" in text, "hx-get" in text) == (False, False)


def test_unavailable_broker_is_reported(browser: Client, settings: Settings) -> None:
    assert "Message broker" not in browser.get(reverse("notifications:list")).content.decode()
    make_undelivered()
    Delivery.objects.update(state=Delivery.State.PENDING, problem="The broker does not answer.")
    settings.NOTIFICATION_URL = "rabbit://nowhere.invalid/"
    assert "The broker does not answer." in browser.get(reverse("notifications:list")).content.decode()


def test_logged_out_user_is_informed_that_the_request_was_not_executed(client: Client) -> None:
    make_undelivered()
    text = client.post(reverse("notifications:resend-all"), follow=True).content.decode()
    assert "Your session has ended. The request was not executed" in text
    assert Delivery.objects.undelivered().exists()


def test_dead_letters_are_resent_individually_and_together(browser: Client) -> None:
    first = make_undelivered(subscribe_to(PUBLIC))
    make_undelivered()
    text = browser.get(reverse("notifications:undelivered")).content.decode()
    assert ("the message broker" in text, "It answered 500" in text) == (True, True)
    browser.post(reverse("notifications:resend", args=[first.uuid]))
    assert Delivery.objects.undelivered().count() == 1
    browser.post(reverse("notifications:resend-all"))
    assert Delivery.objects.undelivered().count() == 0


def test_bulk_resend_is_confirmed_and_limited_to_the_filter(browser: Client) -> None:
    pager, archive = subscribe_to(PUBLIC, "pager"), subscribe_to(PUBLIC, "archive")
    deliveries = [make_undelivered(one) for one in (pager, pager, archive, None)]
    shown = browser.get(reverse("notifications:undelivered"), {"receiver": "PAGER"}).content.decode()
    where = f"{reverse('notifications:resend-all')}?receiver=PAGER"
    assert ("Send these 2 again" in shown, f'href="{where}"' in shown) == (True, True)
    page = browser.get(where).content.decode()
    assert ("Send 2 notifications again?" in page, "receiver containing “PAGER”" in page) == (True, True)
    done = browser.post(where)
    assert done["Location"] == f"{reverse('notifications:undelivered')}?receiver=PAGER"
    assert set(Delivery.objects.undelivered()) == set(deliveries[2:])
    assert "No notifications to send again" in browser.get(where, follow=True).content.decode()
    browser.post(f"{reverse('notifications:resend-all')}?receiver=Broker")
    assert list(Delivery.objects.undelivered()) == [deliveries[2]]


@pytest.mark.parametrize("verb", ["resend", "delete-undelivered"])
def test_dead_letter_button_returns_to_the_filtered_list(browser: Client, verb: str) -> None:
    address = f"{reverse(f'notifications:{verb}', args=[make_undelivered().uuid])}?event=action&sort=-attempts"
    listed = browser.get(reverse("notifications:undelivered"), {"event": "action", "sort": "-attempts"})
    assert address.replace("&", "&amp;") in listed.content.decode()
    assert browser.post(address)["Location"].endswith("?event=action&sort=-attempts")
    assert not Delivery.objects.undelivered().exists()


def test_object_of_a_dead_letter_is_linked(browser: Client) -> None:
    server = make_server("web-1")
    (delivery, stranger) = (make_undelivered(), make_undelivered())
    Notification.objects.filter(pk=delivery.notification_id).update(object_uuid=server.uuid)
    text = browser.get(reverse("notifications:undelivered")).content.decode()
    assert f'href="{reverse("cluster:server", args=[server.uuid])}"' in text
    assert f'title="{stranger.notification.object_uuid}"' in text


def test_pending_deliveries_of_disabled_subscriptions_are_listed_as_undelivered(browser: Client) -> None:
    make_undelivered(subscribe_to(PUBLIC, "pager", enabled=False))
    make_undelivered(subscribe_to(PUBLIC, "archive"))
    make_undelivered()
    Delivery.objects.update(state=Delivery.State.PENDING)
    text = browser.get(reverse("notifications:undelivered")).content.decode()
    assert ("pager" in text, "archive" in text) == (True, False)
    assert ("pending: subscription disabled" in text, "pending: no message broker" in text) == (True, True)
    assert "Send again" not in text


def test_url_is_reduced_to_its_host_without_the_change_permission(browser: Client, reader: User) -> None:
    pages = [
        reverse("notifications:detail", args=[subscribe_to(f"{PUBLIC}/T0KEN").uuid]),
        reverse("notifications:list"),
    ]
    assert all("T0KEN" in browser.get(page).content.decode() for page in pages)
    browser.force_login(reader)
    for page in pages:
        text = browser.get(page).content.decode()
        assert ("http://192.0.2.7" in text, "T0KEN" in text) == (True, False)


def test_reader_sees_no_buttons(client: Client, reader: User) -> None:
    client.force_login(reader)
    subscription = subscribe_to(PUBLIC)
    make_undelivered(subscription)
    text = client.get(reverse("notifications:undelivered")).content.decode()
    assert ("Send" in text, "Delete" in text) == (False, False)
    assert client.post(reverse("notifications:resend-all")).status_code == 403
    assert "Change" not in client.get(reverse("notifications:detail", args=[subscription.uuid])).content.decode()
    assert client.get(reverse("notifications:new")).status_code == 403


def test_problem_is_shown_in_the_language_of_the_reader(browser: Client) -> None:
    subscription = subscribe_to(PUBLIC)
    problem = "It answered 500 Internal Server Error."
    make_undelivered(subscription)
    Subscription.objects.update(problem=problem)
    pages = [reverse("notifications:list"), reverse("notifications:undelivered")]
    for page in [*pages, reverse("notifications:detail", args=[subscription.uuid])]:
        german = browser.get(page, headers={"accept-language": "de"}).content.decode()
        assert "Antwort: 500 Internal Server Error." in german
        assert problem in browser.get(page).content.decode()
