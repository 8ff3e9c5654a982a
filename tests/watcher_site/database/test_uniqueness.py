"""Only the violation of a unique name or value is reported as a taken name."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Model

from actions.models.exclusions import Exclusion
from cluster.models import Profile, Server, Stack
from cluster.operations import named_records
from tests.builders import make_profile, make_server
from watcher_site.database.uniqueness import is_taken
from watcher_site.models import Subscription
from watcher_site.refusals import Conflict

pytestmark = pytest.mark.django_db


def error_of(row: Model) -> IntegrityError:
    with pytest.raises(IntegrityError) as raised, transaction.atomic():
        row.save(force_insert=True)
    return raised.value


def test_name_that_differs_only_in_case_is_taken() -> None:
    Exclusion.objects.create(name="freeze")
    assert is_taken(error_of(Exclusion(name="FREEZE")), Exclusion, "name")


def test_value_unique_among_present_rows_is_taken() -> None:
    make_server("one", token="once")
    row = Server(name="two", token="once", vcpus=1, memory=1, disk=1)
    assert is_taken(error_of(row), Server, "token")


def test_value_of_a_unique_field_is_taken() -> None:
    User.objects.create(username="alice")
    assert is_taken(error_of(User(username="alice")), User, "username")


def test_null_violation_is_not_reported_as_taken() -> None:
    assert not is_taken(error_of(Exclusion(name="freeze", enabled=None)), Exclusion, "name")


def test_violation_of_another_unique_field_is_not_reported_as_taken() -> None:
    first = Exclusion.objects.create(name="freeze")
    assert not is_taken(error_of(Exclusion(name="thaw", uuid=first.uuid)), Exclusion, "name")


@pytest.mark.parametrize("model", [Profile, Stack, Subscription])
def test_name_constraint_is_recognized(model: type[Model]) -> None:
    class Cause(Exception):
        diag: Any = type("Diagnosis", (), {"sqlstate": "23505"})

    names = [one.name for one in model._meta.constraints if "name" in str(one.deconstruct())]
    Cause.diag.constraint_name = next(name for name in names if "root" not in name)
    error = IntegrityError()
    error.__cause__ = Cause()
    assert is_taken(error, model, "name")


def test_record_with_a_taken_name_is_refused() -> None:
    make_profile("web")
    with pytest.raises(Conflict, match="name: another profile is called web"):
        named_records.save(Profile(name="web", spec={}))


def test_other_violation_of_a_record_is_not_reported_as_a_taken_name() -> None:
    with pytest.raises(IntegrityError):
        named_records.save(Exclusion(name="freeze", enabled=None))
