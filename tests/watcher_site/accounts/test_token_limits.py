"""The name, the limits, the expiry and the last use of tokens."""

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone
from knox.models import AuthToken
from rest_framework.permissions import AllowAny
from rest_framework.views import APIView

from tests.builders import make_plan
from watcher_site.accounts.projects import add_member
from watcher_site.accounts.tokens import MOST_TOKENS, make_token
from watcher_site.api.permissions import LoggedIn
from watcher_site.models import HistoryEntry, TokenDetails
from watcher_site.processes.commands import caller
from watcher_site.refusals import Conflict, Invalid
from watcher_site.request_context import on_behalf_of

pytestmark = pytest.mark.django_db

SKIP = [{"op": "replace", "path": "/state", "value": "SKIPPED"}]
VERSION = {"OpenStack-API-Version": "infra-optim 1.13"}


def command(*arguments: str) -> str:
    printed = StringIO()
    call_command(*arguments, stdout=printed)
    return printed.getvalue()


def sent_with(token: str) -> dict[str, str]:
    return VERSION | {"X-Auth-Token": token}


def read(token: str, path: str = "/v1/actions") -> int:
    return Client().get(path, headers=sent_with(token)).status_code


def skip(token: str) -> int:
    path = f"/v1/actions/{make_plan({'a': []}).actions.get().uuid}"
    return (
        Client().patch(path, json.dumps(SKIP), content_type="application/json", headers=sent_with(token)).status_code
    )


def token_of(user: User, **limits: Any) -> str:
    return make_token(user, **limits)[1]


@pytest.fixture
def superuser(db: None) -> User:
    return User.objects.create_superuser("root", password="root-password")


# Tokens for reading.


def test_a_token_for_reading_reads_and_changes_nothing(cloud_admin: User) -> None:
    token = token_of(cloud_admin, read_only=True)
    assert (read(token), skip(token)) == (200, 403)


def test_a_token_without_limits_changes_what_its_account_may_change(cloud_admin: User) -> None:
    assert skip(token_of(cloud_admin)) == 200


def test_a_token_for_reading_of_a_superuser_changes_nothing(superuser: User) -> None:
    token = token_of(superuser, read_only=True)
    assert (read(token), skip(token)) == (200, 403)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", ["/v1/audits", "/compute/v2.1/servers", "/orchestration/v1/p/stacks", "/metrics"])
def test_a_token_for_reading_is_refused_by_every_method_that_changes_something(
    cloud_admin: User, path: str, method: str
) -> None:
    token = token_of(cloud_admin, read_only=True)
    answer = Client().generic(method, path, "{}", content_type="application/json", headers=sent_with(token))
    assert answer.status_code in {403, 404, 405, 501}
    assert not HistoryEntry.objects.filter(outcome=HistoryEntry.Outcome.SUCCESS).exists()


def test_history_records_what_a_token_for_reading_was_refused(cloud_admin: User) -> None:
    skip(token_of(cloud_admin, read_only=True))
    entry = HistoryEntry.objects.get(deed="action.skip")
    assert (entry.user, entry.outcome, entry.message) == ("alice", "refused", "This token is for reading only.")


def views(patterns: Any = None) -> Any:
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        if isinstance(pattern, URLResolver):
            yield from views(pattern.url_patterns)
        elif isinstance(pattern, URLPattern):
            view = getattr(pattern.callback, "cls", None) or getattr(pattern.callback, "view_class", None)
            if view and issubclass(view, APIView):
                yield view


def test_every_view_that_needs_a_login_obeys_the_limits_of_tokens() -> None:
    found = set(views())
    assert len(found) > 30
    unguarded = {
        view
        for view in found
        if not any(issubclass(permission, LoggedIn) for permission in view.permission_classes)
        and list(view.permission_classes) != [AllowAny]
    }
    assert unguarded == set()


# Tokens for one group.


def test_a_token_for_a_group_has_the_rights_of_that_group_only(cloud_admin: User) -> None:
    cloud_admin.groups.add(Group.objects.get(name="reader"))
    token = token_of(cloud_admin, group="reader")
    assert (read(token), skip(token)) == (200, 403)
    assert skip(token_of(cloud_admin, group="cloud-admin")) == 200


def test_a_token_for_a_group_has_no_permission_of_the_account_itself(reader: User) -> None:
    reader.user_permissions.add(Permission.objects.get(codename="skip_action"))
    assert skip(token_of(reader, group="reader")) == 403


def test_a_superusers_token_for_a_group_has_the_rights_of_that_group_only(superuser: User) -> None:
    token = token_of(superuser, group="reader")
    assert (read(token), skip(token)) == (200, 403)
    assert User.objects.get(pk=superuser.pk).is_superuser


def test_a_token_for_a_group_ends_to_give_rights_when_its_account_leaves_the_group(cloud_admin: User) -> None:
    cloud_admin.groups.add(Group.objects.get(name="reader"))
    token = token_of(cloud_admin, group="reader")
    cloud_admin.groups.remove(Group.objects.get(name="reader"))
    assert read(token) == 403


def test_a_token_for_a_group_that_was_deleted_gives_no_rights(cloud_admin: User) -> None:
    group = Group.objects.create(name="night-shift")
    group.permissions.add(Permission.objects.get(codename="view_action"))
    cloud_admin.groups.add(group)
    token = token_of(cloud_admin, group="night-shift")
    assert read(token) == 200
    group.delete()
    assert read(token) == 403


def test_a_token_for_a_group_loses_the_permissions_that_the_group_loses(cloud_admin: User) -> None:
    group = Group.objects.create(name="night-shift")
    group.permissions.add(Permission.objects.get(codename="view_action"))
    cloud_admin.groups.add(group)
    token = token_of(cloud_admin, group="night-shift")
    group.permissions.clear()
    assert read(token) == 403


def test_a_token_for_a_former_superuser_has_the_rights_of_groups_it_is_in_only(superuser: User) -> None:
    token = token_of(superuser, group="reader")
    User.objects.filter(pk=superuser.pk).update(is_superuser=False)
    assert read(token) == 403


def test_a_token_for_another_group_reaches_no_projects(cloud_admin: User) -> None:
    group = Group.objects.create(name="night-shift")
    cloud_admin.groups.add(group, Group.objects.get(name="member"))
    add_member("alice", "blue")
    tokens = [token_of(cloud_admin, group=name) for name in ("night-shift", "member")]
    assert [read(token, "/v1/servers") for token in tokens] == [403, 200]


def test_a_token_for_a_group_may_be_for_reading_too(cloud_admin: User) -> None:
    token = token_of(cloud_admin, group="cloud-admin", read_only=True)
    assert (read(token), skip(token)) == (200, 403)


@pytest.mark.parametrize("group", ["cloud-admin", "no-such-group", "a\0b"])
def test_a_token_for_a_group_of_others_is_refused(reader: User, group: str) -> None:
    with pytest.raises(Invalid, match="group"):
        make_token(reader, group=group)
    assert not AuthToken.objects.exists()


# Names, numbers and commands.


@pytest.mark.parametrize("name", ["a" * 101, " a", "a\nb", "a\0b"])
def test_a_name_that_lists_cannot_show_is_refused(reader: User, name: str) -> None:
    with pytest.raises(Invalid, match="name"):
        make_token(reader, name=name)


def test_an_account_has_a_bounded_number_of_valid_tokens(reader: User) -> None:
    AuthToken.objects.create(reader, expiry=timedelta(seconds=-1))
    for _ in range(MOST_TOKENS):
        AuthToken.objects.create(reader)
    with pytest.raises(Conflict, match="Revoke one first"):
        make_token(reader)


def test_a_disabled_account_gets_no_token(reader: User) -> None:
    reader.is_active = False
    with pytest.raises(Invalid, match="disabled"):
        make_token(reader)


def test_the_command_limits_a_token_and_the_list_tells_so(cloud_admin: User) -> None:
    token = command("create_token", "alice", "--name", "night job", "--read-only", "--group", "cloud-admin").strip()
    line = command("list_tokens")
    assert line.split("  ")[:4] == [token[:15], "alice", "night job", "rights of group cloud-admin, read only"]
    assert "never used" in line
    read(token)
    assert "last used 2" in command("list_tokens")


def test_the_command_refuses_a_group_of_others(reader: User) -> None:
    with pytest.raises(CommandError, match=r"rob is in no group .cloud-admin"):
        command("create_token", "rob", "--group", "cloud-admin")


def test_history_records_the_scope_and_never_the_token(cloud_admin: User) -> None:
    with on_behalf_of(lambda: caller("rosa")):
        token = token_of(cloud_admin, name="night job", read_only=True)
    entry = HistoryEntry.objects.get(deed="token.create")
    assert (entry.details["name"], entry.details["scope"]) == ("night job", "all rights of the account, read only")
    assert token not in str(entry.details)


def test_a_token_ends_together_with_its_details(cloud_admin: User) -> None:
    token_of(cloud_admin, name="night job")
    command("revoke_token", "--user", "alice")
    assert not TokenDetails.objects.exists()


def test_the_details_that_a_process_of_the_previous_release_left_give_nobody_rights(cloud_admin: User) -> None:
    token = token_of(cloud_admin)
    AuthToken.objects.all()._raw_delete("default")
    assert (read(token), TokenDetails.objects.count()) == (401, 1)


# The last use.


def moments() -> list[Any]:
    return list(TokenDetails.objects.values_list("last_used_at", flat=True))


def statements(token: str) -> list[str]:
    with CaptureQueriesContext(connection) as queries:
        assert read(token, "/v1/actions") == 200
    return [query["sql"].split()[0] for query in queries.captured_queries]


def test_the_first_use_is_stored(cloud_admin: User) -> None:
    token = token_of(cloud_admin)
    assert statements(token).count("UPDATE") == 1
    assert timezone.now() - moments()[0] < timedelta(minutes=1)


def test_the_first_use_of_a_token_of_an_earlier_release_is_stored(cloud_admin: User) -> None:
    _, token = AuthToken.objects.create(cloud_admin)
    read(token)
    assert len(moments()) == 1


def test_further_uses_within_a_minute_write_nothing(cloud_admin: User) -> None:
    token = token_of(cloud_admin)
    read(token)
    assert statements(token) == ["SELECT", "SELECT"]


def test_a_use_after_a_minute_is_stored(cloud_admin: User) -> None:
    token = token_of(cloud_admin)
    read(token)
    TokenDetails.objects.update(last_used_at=timezone.now() - timedelta(seconds=61))
    assert statements(token).count("UPDATE") == 1
    assert timezone.now() - moments()[0] < timedelta(minutes=1)


def test_a_refused_token_stores_no_use(cloud_admin: User) -> None:
    made, token = make_token(cloud_admin)
    AuthToken.objects.filter(pk=made.pk).update(expiry=timezone.now() - timedelta(seconds=1))
    assert (read(token), moments()) == (401, [None])
