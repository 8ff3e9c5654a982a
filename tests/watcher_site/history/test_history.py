"""The content of a history event, and the callers for whom events are recorded."""

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from tests.builders import make_resource, make_stack
from watcher_site.history import record, record_many, recording
from watcher_site.models import HistoryEntry, Service
from watcher_site.processes.commands import Command
from watcher_site.request_context import CallingContext, on_behalf_of

pytestmark = pytest.mark.django_db
ROSA = CallingContext(user="rosa", request_id="req-1", project="blue")


def test_event_has_user_request_object_and_details() -> None:
    record("user.disable", User(username="bob"), caller=ROSA, message="He left.", details={"sessions": 2})
    entry = HistoryEntry.objects.get()
    assert (entry.user, entry.request_id, entry.project_id) == ("rosa", "req-1", "blue")
    assert (entry.deed, entry.object_type, entry.object_name, entry.outcome) == (
        "user.disable",
        "user",
        "bob",
        "success",
    )
    assert (entry.message, entry.details) == ("He left.", {"sessions": 2})


def test_event_has_the_project_of_its_object_or_of_the_container() -> None:
    stack = make_stack(project_id="sales")
    record("resource.mark", make_resource(stack), caller=CallingContext(user="rosa"), within=stack)
    record("stack.update", stack, caller=ROSA)
    assert list(HistoryEntry.objects.order_by("pk").values_list("project_id", flat=True)) == ["sales", "blue"]


def test_event_without_a_person_is_not_recorded() -> None:
    assert record("user.disable", User(username="bob")) is None
    assert record_many("user.disable", [User(username="bob")]) == []
    assert not HistoryEntry.objects.exists()


def test_rolled_back_event_is_not_recorded() -> None:
    with transaction.atomic():
        record("user.disable", caller=ROSA)
        transaction.set_rollback(True)
    assert not HistoryEntry.objects.exists()


@pytest.mark.postgresql  # Django sends SQLite at most 999 values a statement.
def test_many_events_are_written_in_one_statement(django_assert_num_queries) -> None:
    with django_assert_num_queries(1), on_behalf_of(lambda: ROSA):
        record_many("service.stop", [Service(name=str(number)) for number in range(100)])
    assert HistoryEntry.objects.filter(user="rosa").count() == 100


def test_details_of_any_content_are_sanitized_and_shortened() -> None:
    record("a.b", "n\0ame\ud800", caller=ROSA, details={"x": ["y" * 1000, float("inf"), {"deep": [[[[1]]]]}] * 100})
    entry = HistoryEntry.objects.get()
    assert entry.object_name == "name?"
    assert len(entry.details["x"]) == recording.MOST_VALUES
    assert len(entry.details["x"][0]) <= recording.LONGEST_VALUE


def test_command_acts_for_the_given_person_unless_it_is_a_service() -> None:
    class Disable(Command):
        requires_system_checks = []

        def handle(self, *args: object, **options: object) -> None:
            record("user.disable")

    class Serve(Disable):
        acts_for_person = False

    defaults = {"force_color": False, "no_color": True, "traceback": False}
    Disable().execute(person="rosa", **defaults)
    Serve().execute(person="rosa", **defaults)
    assert HistoryEntry.objects.get().user == "rosa"
