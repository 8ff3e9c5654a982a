"""The console's pages of subscriptions and of what could not be delivered."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
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


def test_a_person_subscribes_sees_the_secret_once_and_changes_it(browser: Client) -> None:
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


def test_a_form_of_changes_that_is_saved_as_it_is_changes_nothing(browser: Client) -> None:
    subscription = subscribe_to(f"{PUBLIC}/T0KEN?key=1")
    page = reverse("notifications:change", args=[subscription.uuid])
    form = browser.get(page).context["form"]
    browser.post(page, {name: form[name].value() for name in form.fields})
    stored = Subscription.objects.get()
    assert (stored.name, stored.url) == (subscription.name, f"{PUBLIC}/T0KEN?key=1")
    assert (stored.event_types, stored.enabled) == (subscription.event_types, True)


def test_what_is_wrong_stands_beside_its_field(browser: Client) -> None:
    fields = {"name": "pager", "url": "ftp://example.org", "event_types": "*"}
    text = browser.post(reverse("notifications:new"), fields).content.decode()
    assert "must begin with https:// or http://" in text
    assert not Subscription.objects.exists()


def test_all_that_is_wrong_is_reported_at_once(browser: Client) -> None:
    fields = {"name": "a/b", "url": "ftp://example.org", "event_types": "nonsense"}
    form = browser.post(reverse("notifications:new"), fields).context["form"]
    assert form.errors.keys() == {"name", "url", "event_types"}


def test_a_secret_is_made_again_and_no_page_with_one_is_kept(browser: Client) -> None:
    fields = {"name": "pager", "url": PUBLIC, "event_types": "*", "enabled": "on"}
    made = browser.post(reverse("notifications:new"), fields, follow=True)
    subscription = Subscription.objects.get()
    renewed = browser.post(reverse("notifications:secret", args=[subscription.uuid]), follow=True)
    assert made["Cache-Control"] == renewed["Cache-Control"] == "no-store"
    secret = unseal_secret(Subscription.objects.get())
    assert (secret in renewed.content.decode(), secret in made.content.decode()) == (True, False)


def test_a_test_message_is_sent(browser: Client) -> None:
    subscription = subscribe_to(PUBLIC)
    where = reverse("notifications:test", args=[subscription.uuid])
    detail = reverse("notifications:detail", args=[subscription.uuid])
    assert where in browser.get(detail).content.decode()
    assert "A test message is being sent." in browser.post(where, follow=True).content.decode()
    assert Delivery.objects.get().notification.event_type == "subscription.test"
    Subscription.objects.update(enabled=False)
    assert where not in browser.get(detail).content.decode()


def test_a_broker_that_does_not_answer_is_reported(browser: Client, settings: Settings) -> None:
    assert "Message broker" not in browser.get(reverse("notifications:list")).content.decode()
    make_undelivered()
    Delivery.objects.update(state=Delivery.State.PENDING, problem="The broker does not answer.")
    settings.NOTIFICATION_URL = "rabbit://nowhere.invalid/"
    assert "The broker does not answer." in browser.get(reverse("notifications:list")).content.decode()


def test_who_was_logged_out_reads_that_nothing_was_done(client: Client) -> None:
    make_undelivered()
    text = client.post(reverse("notifications:resend-all"), follow=True).content.decode()
    assert "Your session has ended. The request was not executed" in text
    assert Delivery.objects.undelivered().exists()


def test_dead_letters_are_sent_again_one_or_all(browser: Client) -> None:
    first = make_undelivered(subscribe_to(PUBLIC))
    make_undelivered()
    text = browser.get(reverse("notifications:undelivered")).content.decode()
    assert ("the message broker" in text, "It answered 500" in text) == (True, True)
    browser.post(reverse("notifications:resend", args=[first.uuid]))
    assert Delivery.objects.undelivered().count() == 1
    browser.post(reverse("notifications:resend-all"))
    assert Delivery.objects.undelivered().count() == 0


def test_sending_many_again_asks_how_many_and_which_and_keeps_to_the_filter(browser: Client) -> None:
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
def test_a_button_of_a_dead_letter_leads_back_to_the_list_as_it_was(browser: Client, verb: str) -> None:
    address = f"{reverse(f'notifications:{verb}', args=[make_undelivered().uuid])}?event=action&sort=-attempts"
    listed = browser.get(reverse("notifications:undelivered"), {"event": "action", "sort": "-attempts"})
    assert address.replace("&", "&amp;") in listed.content.decode()
    assert browser.post(address)["Location"].endswith("?event=action&sort=-attempts")
    assert not Delivery.objects.undelivered().exists()


def test_what_a_dead_letter_is_of_is_named_and_has_a_link(browser: Client) -> None:
    server = make_server("web-1")
    (delivery, stranger) = (make_undelivered(), make_undelivered())
    Notification.objects.filter(pk=delivery.notification_id).update(object_uuid=server.uuid)
    text = browser.get(reverse("notifications:undelivered")).content.decode()
    assert f'href="{reverse("cluster:server", args=[server.uuid])}"' in text
    assert f'title="{stranger.notification.object_uuid}"' in text


def test_what_waits_for_a_receiver_that_is_switched_off_stands_among_what_is_undelivered(browser: Client) -> None:
    make_undelivered(subscribe_to(PUBLIC, "pager", enabled=False))
    make_undelivered(subscribe_to(PUBLIC, "archive"))
    make_undelivered()
    Delivery.objects.update(state=Delivery.State.PENDING)
    text = browser.get(reverse("notifications:undelivered")).content.decode()
    assert ("pager" in text, "archive" in text) == (True, False)
    assert ("pending: subscription disabled" in text, "pending: no message broker" in text) == (True, True)
    assert "Send again" not in text


def test_who_may_not_change_a_subscription_sees_the_host_of_its_url_alone(browser: Client, reader: User) -> None:
    pages = [
        reverse("notifications:detail", args=[subscribe_to(f"{PUBLIC}/T0KEN").uuid]),
        reverse("notifications:list"),
    ]
    assert all("T0KEN" in browser.get(page).content.decode() for page in pages)
    browser.force_login(reader)
    for page in pages:
        text = browser.get(page).content.decode()
        assert ("http://192.0.2.7" in text, "T0KEN" in text) == (True, False)


def test_a_reader_finds_no_button(client: Client, reader: User) -> None:
    client.force_login(reader)
    subscription = subscribe_to(PUBLIC)
    make_undelivered(subscription)
    text = client.get(reverse("notifications:undelivered")).content.decode()
    assert ("Send" in text, "Delete" in text) == (False, False)
    assert client.post(reverse("notifications:resend-all")).status_code == 403
    assert "Change" not in client.get(reverse("notifications:detail", args=[subscription.uuid])).content.decode()
    assert client.get(reverse("notifications:new")).status_code == 403
