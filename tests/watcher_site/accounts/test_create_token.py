"""`create_token` prints an API token once."""

from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone
from knox.auth import TokenAuthentication
from knox.models import get_token_model


def create_token(*arguments: str) -> str:
    printed = StringIO()
    call_command("create_token", *arguments, stdout=printed)
    return printed.getvalue().strip()


def test_printed_token_authenticates_its_user(stranger: User) -> None:
    user, _ = TokenAuthentication().authenticate_credentials(create_token(stranger.username).encode())
    assert user == stranger


def test_plain_token_is_not_stored(stranger: User) -> None:
    token = create_token(stranger.username)
    assert token not in str(get_token_model().objects.values())


def test_hours_set_the_expiry(stranger: User) -> None:
    create_token(stranger.username, "--hours", "2")
    left = get_token_model().objects.get().expiry - timezone.now()
    assert timedelta(hours=1.9) < left <= timedelta(hours=2)


def test_error_for_too_many_hours_repeats_the_value(stranger: User) -> None:
    with pytest.raises(CommandError, match=r"at most 87600 \(ten years\), and is 99999999\.$"):
        create_token(stranger.username, "--hours", "99999999")


@pytest.mark.parametrize("hours", ["0", "-1", "nan", "inf", "1e12"])
def test_invalid_hours_are_refused(stranger: User, hours: str) -> None:
    with pytest.raises(CommandError, match="hours"):
        create_token(stranger.username, f"--hours={hours}")


def test_unknown_user_is_refused(db: None) -> None:
    with pytest.raises(CommandError, match="no active user named nobody"):
        create_token("nobody")


def test_disabled_user_gets_no_token(stranger: User) -> None:
    User.objects.filter(pk=stranger.pk).update(is_active=False)
    with pytest.raises(CommandError, match="no active user"):
        create_token(stranger.username)
