"""Subscriptions and undelivered notifications in the API and in commands."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from tests.api import Caller, fault
from tests.watcher_site.notifications.relaying import make_undelivered, subscribe_to
from watcher_site.models import Delivery, HistoryEntry, Notification, Subscription
from watcher_site.notifications.subscriptions import change_subscription
from watcher_site.notifications.webhooks import unseal_secret
from watcher_site.outbox.writing import listeners

pytestmark = pytest.mark.django_db

PLAN_UUID = "0d5a3c5e-6a0b-4c0e-9c55-3a3a8f6f2c11"
PUBLIC = "http://192.0.2.7/events"
NEW = {"name": "pager", "url": PUBLIC, "event_types": ["*.error"]}


@pytest.fixture
def api(cloud_admin: User, settings: Settings) -> Caller:
    settings.WEBHOOK_PRIVATE_ADDRESSES = True
    return Caller(cloud_admin, "1.13")


def replace(path: str, value: Any) -> list[dict[str, Any]]:
    return [{"op": "replace", "path": path, "value": value}]


def test_secret_of_a_subscription_is_returned_only_on_creation(api: Caller) -> None:
    made = api.post("/subscriptions", NEW)
    assert made.status_code == 201
    subscription = Subscription.objects.get()
    assert made.json()["secret"] == unseal_secret(subscription)
    assert made.json()["secret"] not in subscription.secret
    shown = api.get(f"/subscriptions/{subscription.uuid}").json()
    assert made.json() == shown | {"secret": made.json()["secret"]}
    assert "secret" not in shown
    assert listeners.want("action.execution.error", "ERROR")
    assert not listeners.want("action.update", "INFO")


def test_history_records_only_the_host_of_a_url(api: Caller) -> None:
    made = api.post("/subscriptions", {**NEW, "url": "http://192.0.2.7/hook/T0KEN?key=T0KEN"}).json()
    api.patch(f"/subscriptions/{made['uuid']}", replace("/url", "http://192.0.2.7/hook/0THER"))
    created, changed = HistoryEntry.objects.filter(object_uuid=made["uuid"]).order_by("pk")
    assert created.details["url"] == "http://192.0.2.7"
    assert changed.details == {"url": "changed"}


def test_subscription_is_changed_and_deleted_with_its_deliveries(api: Caller) -> None:
    subscription = subscribe_to(PUBLIC, failures=3)
    make_undelivered(subscription)
    path = f"/subscriptions/{subscription.uuid}"
    changed = api.patch(path, [*replace("/event_types", ["audit.*"]), *replace("/enabled", False)]).json()
    assert (changed["event_types"], changed["enabled"], changed["failures"]) == (["audit.*"], False, 0)
    assert api.delete(path).status_code == 204
    assert api.get(path).status_code == 404
    assert not Delivery.objects.exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": None}, "name"),
        ({"url": "ftp://example.org"}, "url: must begin with https:// or http://"),
        ({"url": "http://rosa:secret@192.0.2.7/"}, "url: must not contain a user or a password"),
        ({"url": "http://[::1/"}, "url: the host is invalid: an IPv6 address must be enclosed in [ and ]."),
        ({"url": "http:///events"}, "url: has no host after http://."),
        ({"url": "http://*.example.org/"}, "url: *.example.org is not a valid host."),
        ({"url": "http://192.0.2.7:99999/"}, "url: the port must be a number from 1 to 65535."),
        ({"url": "http://192.0.2.7:abc/"}, "url: the port must be a number"),
        ({"url": "http://192.0.2.7/a%20b/%zz"}, "url: %zz is not a valid escape"),
        (
            {"url": "http://192.0.2.7/\u202e"},
            "url: must not contain control or format characters, but contains U+202E.",
        ),
        ({"url": "http://nowhere.invalid/"}, "url: the host nowhere.invalid has no address."),
        ({"name": "one\ntwo"}, "name: must not contain control or format characters, but contains U+000A."),
        ({"name": "pager\u202egpj"}, "name: must not contain control or format characters, but contains U+202E."),
        ({"name": "Broker"}, "name: must not contain a slash, end in .json, or be one of detail, broker."),
        ({"name": "a/b"}, "name: must not contain a slash"),
        ({"name": PLAN_UUID}, "name: must not be a UUID."),
        ({"url": "http://192.0.2.7/#here"}, "url: must not contain a fragment"),
        ({"url": "http://192.0.2.7:0/"}, "url: the port must be a number"),
        ({"event_types": []}, "event_types: must be a list of 1 to 50 patterns"),
        ({"event_types": ["Action Plan"]}, "event_types: a pattern is an event type"),
        ({"event_types": ["*", "action.updat"]}, "event_types: there is no event action.updat; there is action.up"),
        ({"event_types": ["nonsense.*"]}, "event_types: there is no event nonsense.*; events begin with action, "),
        ({"event_types": [5]}, "event_types.0. Not a valid string."),
        ({"secret": "whsec_c2hvcnQ="}, "secret: must be whsec_ and 24 to 64 bytes in base64."),
        ({"failures": 1}, "failures"),
    ],
)
def test_invalid_subscription_is_refused(api: Caller, changes: dict[str, Any], words: str) -> None:
    answer = api.post("/subscriptions", NEW | changes)
    assert answer.status_code == 400
    assert words in fault(answer)
    assert not Subscription.objects.exists()


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "10.1.2.3", "169.254.169.254", "[::1]", "[fe80::1]", "[::ffff:10.0.0.1]", "0.0.0.1"],
)
def test_private_address_is_refused_unless_the_setting_allows_it(api: Caller, settings: Settings, host: str) -> None:
    settings.WEBHOOK_PRIVATE_ADDRESSES = False
    refused = api.post("/subscriptions", NEW | {"url": f"http://{host}/"})
    assert refused.status_code == 400
    assert "private address" in fault(refused)
    settings.WEBHOOK_PRIVATE_ADDRESSES = True
    assert api.post("/subscriptions", NEW | {"url": f"http://{host}/"}).status_code == 201


def test_subscription_name_is_case_insensitive(api: Caller) -> None:
    uuid = api.post("/subscriptions", NEW).json()["uuid"]
    assert api.get("/subscriptions/PAGER").json()["uuid"] == uuid
    assert api.get("/subscriptions?name=Pager").json()["subscriptions"][0]["uuid"] == uuid
    assert api.post("/subscriptions", NEW | {"name": "PAGER"}).status_code == 409
    assert api.patch("/subscriptions/Pager", replace("/enabled", False)).status_code == 200
    assert api.delete("/subscriptions/pager").status_code == 204


def test_unchanged_values_are_not_validated_again(api: Caller) -> None:
    subscription = subscribe_to("http://nowhere.invalid/", "a/b", event_types=["nonsense"])
    everything = {"name": "a/b", "url": "http://nowhere.invalid/", "event_types": ["nonsense"], "enabled": False}
    assert not change_subscription(subscription, everything).enabled


def test_name_and_number_of_subscriptions_are_limited(api: Caller, settings: Settings) -> None:
    api.post("/subscriptions", NEW)
    assert api.post("/subscriptions", NEW).status_code == 409
    settings.MOST_SUBSCRIPTIONS = 0
    words = "There are 1 subscriptions already, and WATCHER_MOST_SUBSCRIPTIONS allows 0."
    assert fault(api.post("/subscriptions", NEW | {"name": "other"})) == words


def test_reader_can_list_and_not_change_subscriptions(reader: User) -> None:
    one = Caller(reader, "1.13")
    delivery = make_undelivered()
    assert one.get("/subscriptions").status_code == one.get("/undelivered").status_code == 200
    assert one.post("/subscriptions", NEW).status_code == 403
    assert one.post(f"/undelivered/{delivery.uuid}/resend").status_code == 403
    assert one.post("/undelivered/resend").status_code == 403


def test_secret_is_renewed_and_returned_once(api: Caller, reader: User) -> None:
    subscription = subscribe_to(PUBLIC, "pager")
    former = unseal_secret(subscription)
    answer = api.post("/subscriptions/pager/secret")
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    assert answer.json()["secret"] == unseal_secret(Subscription.objects.get()) != former
    assert Caller(reader, "1.13").post("/subscriptions/pager/secret").status_code == 403
    assert api.post("/subscriptions", NEW | {"name": "other"})["Cache-Control"] == "no-store"


def test_test_message_requires_an_enabled_subscription_and_the_change_permission(api: Caller, reader: User) -> None:
    subscribe_to(PUBLIC, "off", enabled=False)
    assert "is disabled: enable it first" in fault(api.post("/subscriptions/off/test"))
    assert Caller(reader, "1.13").post("/subscriptions/off/test").status_code == 403
    assert not Delivery.objects.exists()


def test_broker_state_is_returned(api: Caller, stranger: User) -> None:
    delivery = make_undelivered()
    make_undelivered()
    Delivery.objects.filter(pk=delivery.pk).update(state="PENDING", problem="The broker does not answer.")
    answer = api.get("/broker").json()
    assert (answer["enabled"], answer["waiting"], answer["undelivered"]) == (False, 1, 1)
    assert (answer["problem"], answer["oldest"] is None) == ("The broker does not answer.", False)
    assert Caller(stranger, "1.13").get("/broker").status_code == 403


def test_url_is_reduced_to_its_host_without_the_change_permission(api: Caller, reader: User) -> None:
    url = "http://192.0.2.7/hook/T0KEN?key=T0KEN"
    path = f"/subscriptions/{api.post('/subscriptions', {**NEW, 'url': url}).json()['uuid']}"
    assert api.get(path).json()["url"] == url
    one = Caller(reader, "1.13")
    assert one.get(path).json()["url"] == "http://192.0.2.7"
    for listed in ("/subscriptions", "/subscriptions/detail"):
        assert "T0KEN" not in one.get(listed).content.decode()


def test_url_can_be_changed_to_its_host(api: Caller) -> None:
    made = api.post("/subscriptions", {**NEW, "url": "http://192.0.2.7/hook/T0KEN"}).json()
    assert api.patch(f"/subscriptions/{made['uuid']}", replace("/url", "http://192.0.2.7")).status_code == 200
    assert Subscription.objects.get().url == "http://192.0.2.7"


def test_dead_letter_is_shown_and_resent_once(api: Caller) -> None:
    delivery = make_undelivered(subscribe_to(PUBLIC))
    make_undelivered()
    shown = api.get(f"/undelivered/{delivery.uuid}").json()
    assert (shown["event_type"], shown["attempts"], shown["state"]) == ("action.update", 12, "UNDELIVERED")
    assert shown["subscription_uuid"] == str(delivery.subscription.uuid)
    assert len(api.get("/undelivered/detail").json()["undelivered"]) == 2
    sent = api.post(f"/undelivered/{delivery.uuid}/resend")
    assert (sent.status_code, sent.json()["state"]) == (202, "PENDING")
    assert api.post(f"/undelivered/{delivery.uuid}/resend").status_code == 404
    assert api.post("/undelivered/resend").json() == {"resent": 1}


@pytest.mark.parametrize("value", [False, True, 0, 5, 1.5, [], {}, "", "pager"])
def test_resend_with_an_invalid_subscription_uuid_is_refused(api: Caller, value: object) -> None:
    make_undelivered()
    answer = api.post("/undelivered/resend", {"subscription_uuid": value})
    assert answer.status_code == 400
    assert "subscription_uuid" in fault(answer)
    assert Delivery.objects.undelivered().count() == 1


@pytest.mark.parametrize("body", [b"null", b"false", b"0", b'""', b"[]"])
def test_resend_with_a_body_that_is_no_object_is_refused(api: Caller, body: bytes) -> None:
    make_undelivered()
    answer = api.client.post("/v1/undelivered/resend", body, content_type="application/json", headers=api.headers)
    assert answer.status_code == 400
    assert Delivery.objects.undelivered().count() == 1


def test_resend_is_limited_to_one_subscription(api: Caller) -> None:
    pager = subscribe_to(PUBLIC)
    to_pager, to_broker = make_undelivered(pager), make_undelivered()
    assert api.post("/undelivered/resend", {"subscription_uuid": str(uuid4())}).json() == {"resent": 0}
    assert api.post("/undelivered/resend", {"subscription_uuid": str(pager.uuid)}).json() == {"resent": 1}
    assert list(Delivery.objects.undelivered()) == [to_broker]
    assert HistoryEntry.objects.get().details == {"number": 1, "subscription_uuid": str(pager.uuid)}
    to_pager.delete()
    assert api.post("/undelivered/resend", {"subscription_uuid": None}).json() == {"resent": 1}


@pytest.mark.parametrize(
    ("query", "body", "words"),
    [
        ("", '{"x": 1}', "Unknown attribute for argument resend: x"),
        ("", '{"subscription_uuid": "pager"}', "subscription_uuid"),
        ("", "[]", "An object is expected"),
        ("", '{"subscription_uuid": ', "JSON"),
        ("?subscription_uuid=1", "{}", "Unknown argument"),
    ],
)
def test_resend_with_an_unknown_argument_is_refused(api: Caller, query: str, body: str, words: str) -> None:
    make_undelivered()
    path = f"/v1/undelivered/resend{query}"
    answer = api.client.generic("POST", path, body, content_type="application/json", headers=api.headers)
    assert (answer.status_code, words in fault(answer)) == (400, True)
    assert Delivery.objects.undelivered().exists()


def test_dead_letter_is_deleted(api: Caller) -> None:
    assert api.delete(f"/undelivered/{make_undelivered().uuid}").status_code == 204
    assert not Delivery.objects.exists()


def test_metrics_count_deliveries_for_users_with_the_permission(api: Caller, stranger: User) -> None:
    make_undelivered(subscribe_to(PUBLIC))
    text = api.client.get("/metrics").content.decode()
    assert 'watcher_deliveries{receiver="receiver",state="UNDELIVERED"} 1.0' in text
    assert Caller(stranger).client.get("/metrics").status_code == 403
    assert Caller(None).client.get("/metrics").status_code == 401


def test_purge_removes_delivered_notifications_and_keeps_dead_letters(settings: Settings) -> None:
    (delivered, kept) = (make_undelivered(), make_undelivered())
    delivered.delete()
    call_command("purge", "--yes")
    assert list(Notification.objects.values_list("pk", flat=True)) == [kept.notification_id]
    settings.UNDELIVERED_DAYS = 0
    call_command("purge", "--yes")
    assert not Notification.objects.exists()


def test_purge_removes_old_deliveries_of_disabled_and_deleted_subscriptions(settings: Settings) -> None:
    settings.UNDELIVERED_DAYS = 1
    off = subscribe_to(PUBLIC, "off", enabled=False)
    old, gone, young, awaited = (make_undelivered(one) for one in (off, None, off, subscribe_to(PUBLIC)))
    Delivery.objects.update(state=Delivery.State.PENDING, created_at=timezone.now() - timedelta(days=2))
    Delivery.objects.filter(pk=young.pk).update(created_at=timezone.now())
    call_command("purge", "--yes")
    assert set(Delivery.objects.all()) == {young, awaited}
    assert not Notification.objects.filter(pk__in=[old.notification_id, gone.notification_id]).exists()


def test_purge_keeps_pending_deliveries_to_a_configured_broker(settings: Settings) -> None:
    settings.UNDELIVERED_DAYS = 0
    settings.NOTIFICATION_URL = "rabbit://broker.example.org"
    make_undelivered()
    Delivery.objects.update(state=Delivery.State.PENDING)
    call_command("purge", "--yes")
    assert Delivery.objects.count() == 1


def test_mail_subscription_is_created_and_changed(api: Caller, cloud_admin: User, settings: Settings) -> None:
    settings.EMAIL_HOST = "mail.example.org"
    one = Caller(cloud_admin, "1.17")
    answer = one.post("/subscriptions", {"name": "mail", "kind": "mail", "addresses": ["rosa@example.org"]})
    made = answer.json()
    assert (answer.status_code, "secret" in made) == (201, False)
    assert (made["kind"], made["url"], made["addresses"]) == ("mail", None, ["rosa@example.org"])
    changed = one.patch("/subscriptions/mail", replace("/addresses", ["max@example.org"])).json()
    assert changed["addresses"] == ["max@example.org"]
    assert one.post("/subscriptions/mail/secret").status_code == 409
    assert one.get("/subscriptions").json()["subscriptions"][0]["kind"] == "mail"


def test_earlier_versions_show_only_webhooks(api: Caller, cloud_admin: User) -> None:
    subscribe_to("", "mail", kind="mail", addresses=["rosa@example.org"])
    subscribe_to(PUBLIC)
    assert [one["name"] for one in api.get("/subscriptions").json()["subscriptions"]] == ["receiver"]
    assert "kind" not in api.get("/subscriptions/receiver").json()
    assert api.get("/subscriptions/mail").status_code == api.delete("/subscriptions/mail").status_code == 404
    assert api.post("/subscriptions", NEW | {"kind": "webhook"}).status_code == 406
    assert len(Caller(cloud_admin, "1.17").get("/subscriptions").json()["subscriptions"]) == 2


def test_missing_url_is_refused_in_all_versions(api: Caller, cloud_admin: User) -> None:
    answer = api.post("/subscriptions", {"name": "pager"})
    assert (answer.status_code, "Mandatory field missing" in fault(answer)) == (400, True)
    assert Caller(cloud_admin, "1.17").post("/subscriptions", {"name": "pager"}).status_code == 400


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "mail"}, "url: a subscription of the kind mail has none."),
        ({"addresses": ["rosa@example.org"]}, "addresses: a subscription of the kind webhook has none."),
        ({"kind": "slack", "secret": "whsec_x"}, "secret: a subscription of the kind slack has none."),
        ({"kind": "fax"}, "fax"),
    ],
)
def test_field_of_another_kind_is_refused(
    api: Caller, cloud_admin: User, settings: Settings, changes: dict[str, Any], words: str
) -> None:
    settings.EMAIL_HOST = "mail.example.org"
    answer = Caller(cloud_admin, "1.17").post("/subscriptions", NEW | changes)
    assert (answer.status_code, words in fault(answer)) == (400, True)


def test_url_of_a_chat_is_shown_without_its_path(api: Caller, cloud_admin: User) -> None:
    one = Caller(cloud_admin, "1.17")
    made = one.post("/subscriptions", {"name": "chat", "kind": "slack", "url": f"{PUBLIC}/T0KEN"}).json()
    assert (made["url"], "secret" in made) == ("http://192.0.2.7", False)
    assert "T0KEN" not in str(HistoryEntry.objects.get().details)
    one.patch("/subscriptions/chat", replace("/url", f"{PUBLIC}/0THER"))
    assert unseal_secret(Subscription.objects.get()) == f"{PUBLIC}/0THER"


def test_command_adds_subscriptions_by_mail_and_to_chats(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.WEBHOOK_PRIVATE_ADDRESSES, settings.EMAIL_HOST = True, "mail.example.org"
    call_command("add_subscription", "mail", "rosa@example.org", "max@example.org", "--kind", "mail")
    call_command("add_subscription", "chat", f"{PUBLIC}/T0KEN", "--kind", "slack")
    capsys.readouterr()
    call_command("list_subscriptions")
    chat, mail = capsys.readouterr().out.splitlines()
    assert "mail  enabled  mail rosa@example.org,max@example.org  *" in mail
    assert "chat  enabled  slack http://192.0.2.7  *" in chat


def test_commands_manage_subscriptions_and_resend_notifications(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.WEBHOOK_PRIVATE_ADDRESSES = True
    call_command("add_subscription", "pager", PUBLIC, "--event-type", "*.error")
    assert capsys.readouterr().out.startswith("whsec_")
    make_undelivered(Subscription.objects.get())
    make_undelivered()
    call_command("list_subscriptions")
    assert f"pager  enabled  {PUBLIC}  *.error  0 waiting, 1 undelivered" in capsys.readouterr().out
    call_command("resend_notifications", "--subscription", "pager")
    assert (capsys.readouterr().out, Delivery.objects.undelivered().count()) == ("1\n", 1)
    call_command("resend_notifications")
    assert (capsys.readouterr().out, Delivery.objects.undelivered().count()) == ("1\n", 0)
    former = unseal_secret(Subscription.objects.get())
    call_command("renew_secret", "pager")
    assert capsys.readouterr().out.strip() == unseal_secret(Subscription.objects.get()) != former
    call_command("test_subscription", "pager")
    test = Notification.objects.filter(event_type="subscription.test")
    assert capsys.readouterr().out.strip() == str(test.get().uuid)
    call_command("remove_subscription", "pager")
    assert not Subscription.objects.present().exists()
    with pytest.raises(CommandError, match="there is no subscription pager"):
        call_command("remove_subscription", "pager")
