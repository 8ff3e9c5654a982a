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


# Read-only tokens.


def test_read_only_token_reads_and_changes_nothing(cloud_admin: User) -> None:
    token = token_of(cloud_admin, read_only=True)
    assert (read(token), skip(token)) == (200, 403)


def test_unlimited_token_has_the_permissions_of_its_account(cloud_admin: User) -> None:
    assert skip(token_of(cloud_admin)) == 200


def test_read_only_token_of_a_superuser_changes_nothing(superuser: User) -> None:
    token = token_of(superuser, read_only=True)
    assert (read(token), skip(token)) == (200, 403)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", ["/v1/audits", "/compute/v2.1/servers", "/orchestration/v1/p/stacks", "/metrics"])
def test_read_only_token_is_refused_for_every_changing_method(cloud_admin: User, path: str, method: str) -> None:
    token = token_of(cloud_admin, read_only=True)
    answer = Client().generic(method, path, "{}", content_type="application/json", headers=sent_with(token))
    assert answer.status_code in {403, 404, 405, 501}
    assert not HistoryEntry.objects.filter(outcome=HistoryEntry.Outcome.SUCCESS).exists()


def test_history_records_refusals_of_a_read_only_token(cloud_admin: User) -> None:
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


def test_every_view_that_requires_a_login_checks_token_limits() -> None:
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


def test_group_token_has_only_the_permissions_of_its_group(cloud_admin: User) -> None:
    cloud_admin.groups.add(Group.objects.get(name="reader"))
    token = token_of(cloud_admin, group="reader")
    assert (read(token), skip(token)) == (200, 403)
    assert skip(token_of(cloud_admin, group="cloud-admin")) == 200


def test_group_token_has_no_permission_of_the_account_itself(reader: User) -> None:
    reader.user_permissions.add(Permission.objects.get(codename="skip_action"))
    assert skip(token_of(reader, group="reader")) == 403


def test_group_token_of_a_superuser_has_only_the_permissions_of_its_group(superuser: User) -> None:
    token = token_of(superuser, group="reader")
    assert (read(token), skip(token)) == (200, 403)
    assert User.objects.get(pk=superuser.pk).is_superuser


def test_group_token_loses_its_permissions_when_the_account_leaves_the_group(cloud_admin: User) -> None:
    cloud_admin.groups.add(Group.objects.get(name="reader"))
    token = token_of(cloud_admin, group="reader")
    cloud_admin.groups.remove(Group.objects.get(name="reader"))
    assert read(token) == 403


def test_token_of_a_deleted_group_has_no_permissions(cloud_admin: User) -> None:
    group = Group.objects.create(name="night-shift")
    group.permissions.add(Permission.objects.get(codename="view_action"))
    cloud_admin.groups.add(group)
    token = token_of(cloud_admin, group="night-shift")
    assert read(token) == 200
    group.delete()
    assert read(token) == 403


def test_group_token_loses_the_permissions_removed_from_the_group(cloud_admin: User) -> None:
    group = Group.objects.create(name="night-shift")
    group.permissions.add(Permission.objects.get(codename="view_action"))
    cloud_admin.groups.add(group)
    token = token_of(cloud_admin, group="night-shift")
    group.permissions.clear()
    assert read(token) == 403


def test_group_token_of_a_former_superuser_requires_membership(superuser: User) -> None:
    token = token_of(superuser, group="reader")
    User.objects.filter(pk=superuser.pk).update(is_superuser=False)
    assert read(token) == 403


def test_group_token_reaches_projects_only_with_a_member_group(cloud_admin: User) -> None:
    group = Group.objects.create(name="night-shift")
    cloud_admin.groups.add(group, Group.objects.get(name="member"))
    add_member("alice", "blue")
    tokens = [token_of(cloud_admin, group=name) for name in ("night-shift", "member")]
    assert [read(token, "/v1/servers") for token in tokens] == [403, 200]


def test_group_token_can_be_read_only(cloud_admin: User) -> None:
    token = token_of(cloud_admin, group="cloud-admin", read_only=True)
    assert (read(token), skip(token)) == (200, 403)


@pytest.mark.parametrize("group", ["cloud-admin", "no-such-group", "a\0b"])
def test_token_for_a_group_without_the_account_is_refused(reader: User, group: str) -> None:
    with pytest.raises(Invalid, match="group"):
        make_token(reader, group=group)
    assert not AuthToken.objects.exists()


# Names, numbers and commands.


@pytest.mark.parametrize("name", ["a" * 101, " a", "a\nb", "a\0b"])
def test_name_with_control_characters_or_excess_length_is_refused(reader: User, name: str) -> None:
    with pytest.raises(Invalid, match="name"):
        make_token(reader, name=name)


def test_number_of_valid_tokens_of_an_account_is_limited(reader: User) -> None:
    AuthToken.objects.create(reader, expiry=timedelta(seconds=-1))
    for _ in range(MOST_TOKENS):
        AuthToken.objects.create(reader)
    with pytest.raises(Conflict, match="Revoke one first"):
        make_token(reader)


def test_disabled_account_gets_no_token(reader: User) -> None:
    reader.is_active = False
    with pytest.raises(Invalid, match="disabled"):
        make_token(reader)


def test_list_shows_the_limits_set_by_the_command(cloud_admin: User) -> None:
    token = command("create_token", "alice", "--name", "night job", "--read-only", "--group", "cloud-admin").strip()
    line = command("list_tokens")
    assert line.split("  ")[:4] == [token[:15], "alice", "night job", "rights of group cloud-admin, read only"]
    assert "never used" in line
    read(token)
    assert "last used 2" in command("list_tokens")


def test_command_refuses_a_group_without_the_account(reader: User) -> None:
    with pytest.raises(CommandError, match=r"rob is in no group .cloud-admin"):
        command("create_token", "rob", "--group", "cloud-admin")


def test_history_records_the_scope_and_not_the_token(cloud_admin: User) -> None:
    with on_behalf_of(lambda: caller("rosa")):
        token = token_of(cloud_admin, name="night job", read_only=True)
    entry = HistoryEntry.objects.get(deed="token.create")
    assert (entry.details["name"], entry.details["scope"]) == ("night job", "all rights of the account, read only")
    assert token not in str(entry.details)


def test_token_details_are_deleted_with_the_token(cloud_admin: User) -> None:
    token_of(cloud_admin, name="night job")
    command("revoke_token", "--user", "alice")
    assert not TokenDetails.objects.exists()


def test_orphaned_token_details_of_the_previous_release_do_not_authenticate(cloud_admin: User) -> None:
    token = token_of(cloud_admin)
    AuthToken.objects.all()._raw_delete("default")
    assert (read(token), TokenDetails.objects.count()) == (401, 1)


# The last use.


def last_uses() -> list[Any]:
    return list(TokenDetails.objects.values_list("last_used_at", flat=True))


def statements(token: str) -> list[str]:
    with CaptureQueriesContext(connection) as queries:
        assert read(token, "/v1/actions") == 200
    return [query["sql"].split()[0] for query in queries.captured_queries]


def test_first_use_is_stored(cloud_admin: User) -> None:
    token = token_of(cloud_admin)
    assert statements(token).count("UPDATE") == 1
    assert timezone.now() - last_uses()[0] < timedelta(minutes=1)


def test_first_use_of_a_token_of_an_earlier_release_is_stored(cloud_admin: User) -> None:
    _, token = AuthToken.objects.create(cloud_admin)
    read(token)
    assert len(last_uses()) == 1


def test_second_use_within_a_minute_is_not_stored(cloud_admin: User) -> None:
    token = token_of(cloud_admin)
    read(token)
    assert statements(token) == ["SELECT", "SELECT"]


def test_use_after_a_minute_is_stored(cloud_admin: User) -> None:
    token = token_of(cloud_admin)
    read(token)
    TokenDetails.objects.update(last_used_at=timezone.now() - timedelta(seconds=61))
    assert statements(token).count("UPDATE") == 1
    assert timezone.now() - last_uses()[0] < timedelta(minutes=1)


def test_refused_token_stores_no_use(cloud_admin: User) -> None:
    made, token = make_token(cloud_admin)
    AuthToken.objects.filter(pk=made.pk).update(expiry=timezone.now() - timedelta(seconds=1))
    assert (read(token), last_uses()) == (401, [None])
